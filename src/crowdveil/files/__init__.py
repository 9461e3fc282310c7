"""Atomic file output, output records and file-system primitives."""
