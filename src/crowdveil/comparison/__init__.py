"""Comparison of mechanisms and methods on one crowd."""
