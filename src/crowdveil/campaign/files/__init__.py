"""Campaigns on disk: links, report files, batches, closing, and the folder that `infer` reads."""
