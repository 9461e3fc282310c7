"""Data of the curator: reports, the lists of tasks and workers, assignments, and how they are read and stored."""
