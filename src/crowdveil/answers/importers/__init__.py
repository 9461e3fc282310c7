"""Importers: exports of labelling tools as answers; one file per tool, one line each in the registry."""
