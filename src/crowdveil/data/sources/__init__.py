"""Sources of answers: files of any tool, folders, globs, streams, URLs and SQL tables, read alike."""
