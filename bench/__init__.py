"""Benchmarks of fastrec: seeded logs, a floor to compare with, and one command that measures every promise of speed."""
