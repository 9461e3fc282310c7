"""Review of workers: patterns in answers, reasons, and the order of the list."""
