"""Compiled loops: the only files of this folder's parent that import numba, imported only by `text_table.py`."""
