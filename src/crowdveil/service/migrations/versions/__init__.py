"""One file per version of the schema; a released file never changes."""
