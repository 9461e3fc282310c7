"""Shares of labels among answers, estimated from reports, with intervals."""
