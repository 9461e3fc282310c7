"""Methods for numbers with one weight or variance per worker."""
