"""Modules with the interface of other libraries."""
