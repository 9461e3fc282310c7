"""Folders of results, and the reports, certificates and campaigns that are stated with them."""
