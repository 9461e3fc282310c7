"""Fits when more reports come in: saved and gone on from, or kept up with as a stream."""
