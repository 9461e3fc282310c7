"""Commands on files: import, export, encode, and list data sets."""
