"""Reviews of a crowd: agreement, tasks that need another answer, workers to look at."""
