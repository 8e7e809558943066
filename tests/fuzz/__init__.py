"""Targets of `scripts/fuzz`: random cases, and what each should give."""
