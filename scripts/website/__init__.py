"""Generators of the documentation site: pages and tables that follow from the code, the registry and measurements."""
