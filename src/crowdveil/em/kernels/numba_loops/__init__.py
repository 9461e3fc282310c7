"""Compiled loops; the only modules of the folder that import numba, imported for large data only."""
