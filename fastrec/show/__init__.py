"""How people see results: text, HTML, Markdown, LaTeX, plots."""
