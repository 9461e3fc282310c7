"""Encoded blocks that grow: the files that they hold, and answers that are appended to them."""
