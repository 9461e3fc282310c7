"""Numerical kernels of inference, by numpy for small data and by compiled loops for large data."""
