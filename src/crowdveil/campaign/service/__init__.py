"""HTTP service of a campaign: immutable documents out, reports in, and the curator's operations on the database."""
