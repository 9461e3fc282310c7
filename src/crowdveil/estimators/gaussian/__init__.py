"""Gaussian errors of workers on a scale: model, error classes and belief propagation."""
