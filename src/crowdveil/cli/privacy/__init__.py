"""Verbs on privacy: accounts of the loss, and audits of claims."""
