"""Evaluation of files on disk, of any size."""
