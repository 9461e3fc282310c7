"""The device as one file on the standard library alone, for workers who install nothing."""
