"""Relay of a campaign: forwards sealed reports in shuffled batches; and the curator's side, which stores them."""
