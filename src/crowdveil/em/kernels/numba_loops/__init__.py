"""Compiled loops of inference, the only files here that import numba; only `compiled*.py` import them."""
