"""Reports and names on disk: written whole or not at all, checked when they are read, mapped where they are large."""
