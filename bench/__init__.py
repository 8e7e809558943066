"""Benchmarks of fastrec: seeded logs, a floor to compare with, one command that measures every promise of speed."""
