"""Files and frames of strangers become coded columns: what may be in them, how they are read fast, how rows stand."""
