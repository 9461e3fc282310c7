"""Methods that vote with one weight per worker, without a likelihood."""
