"""Typed facts of a collection and of what a result depends on."""
