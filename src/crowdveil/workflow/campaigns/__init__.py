"""Work of the curator on campaigns: creation, expected error, and links."""
