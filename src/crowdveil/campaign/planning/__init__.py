"""Campaigns from a settings file: expected error, mechanism, alternatives, and creation."""
