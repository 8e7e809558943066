"""Compiled loops: arrays in, arrays out. Nothing else in fastrec uses Numba to compile."""
