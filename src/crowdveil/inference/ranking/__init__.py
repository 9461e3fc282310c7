"""Rankings: one call from a frame of comparisons to ranks with their range."""
