"""Campaign source: the settings file that a person writes, with its tables of tasks and workers and its pictures."""
