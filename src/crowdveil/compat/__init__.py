"""Interfaces of other libraries over crowdveil's own methods."""
