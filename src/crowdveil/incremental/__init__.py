"""Incremental fits: warm starts from saved fits, and online EM on streams of reports."""
