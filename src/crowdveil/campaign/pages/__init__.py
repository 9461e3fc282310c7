"""Curator's pages of the service: login, state of the campaign, results and downloads."""
