"""Formats of files, one module each: how they are recognised, and the SQL that reads them."""
