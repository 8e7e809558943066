"""Targets of `scripts/fuzz`: random cases, and the expected result of each."""
