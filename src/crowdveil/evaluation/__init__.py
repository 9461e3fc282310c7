"""Scores of estimates against known truths."""
