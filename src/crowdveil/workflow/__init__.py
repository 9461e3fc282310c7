"""Library calls of the commands: files in, one value out, files written whole."""
