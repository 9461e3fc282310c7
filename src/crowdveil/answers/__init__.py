"""Data of the curator: reports, identifiers, assignments, data sets, and their storage."""
