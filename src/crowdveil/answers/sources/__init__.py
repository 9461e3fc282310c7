"""Sources of answers: files of any tool, folders, globs, streams, URLs and tables in DuckDB, read alike."""
