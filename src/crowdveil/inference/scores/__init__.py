"""Scores of an inference against known truths, and decisions."""
