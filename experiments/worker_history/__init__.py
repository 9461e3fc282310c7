"""Worker history as prior: gain with the right names, harm with shuffled ones."""
