"""Commands on files: import, export, encode, list data sets, and join rounds."""
