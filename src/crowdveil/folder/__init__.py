"""What lies in a folder on disk: crowd, certificate, reports, truths and their record."""
