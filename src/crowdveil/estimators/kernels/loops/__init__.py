"""Compiled loops: the only files of this half that import numba, imported only by `compiled.py` and `compiled_messages.py`."""
