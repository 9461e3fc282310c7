"""Ingest of CSV files, Parquet files and data frames into validated, dictionary-encoded columns."""
