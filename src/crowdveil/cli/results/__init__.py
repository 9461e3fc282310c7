"""Verbs on inferred results: reports, agreement, next answers and workers to review."""
