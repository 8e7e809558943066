"""How people see results: tables, numbers, text, HTML, Markdown, LaTeX, charts."""
