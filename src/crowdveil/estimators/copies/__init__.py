"""Copies among workers: answers compared by pairs, near-copies, and abilities of pairs."""
