"""Exhibits over all papers."""
