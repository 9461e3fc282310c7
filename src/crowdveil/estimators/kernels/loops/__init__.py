"""Compiled loops: the only files that import numba, imported only by `compiled.py` and `compiled_messages.py`."""
