"""Files of a folder: crowd, certificate, reports, truths and the record of outputs, each with one reader and writer."""
