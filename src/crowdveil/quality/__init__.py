"""Reviews of a crowd: agreement, conclusions, gold, next answers, workers to look at."""
