"""Compiled loops over one block: the only files that import numba, imported only by `compiled.py`."""
