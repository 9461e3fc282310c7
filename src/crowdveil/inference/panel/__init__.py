"""Truths with labels of their own, inferred by a panel of workers."""
