"""Privacy of one worker: accounting of cells, workers and campaigns."""
