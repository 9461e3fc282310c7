"""Answers from the exports of labelling tools, and results back to them."""
