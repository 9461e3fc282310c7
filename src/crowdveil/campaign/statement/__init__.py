"""Statements of privacy of campaigns and of the reports they collect."""
