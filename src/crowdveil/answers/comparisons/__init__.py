"""Comparisons of two items: their values and readers."""
