"""Exhibits of the papers: every table and figure as a program that `crowdveil reproduce` runs.

The names of the exhibits, each with its module; see `experiments.papers.exhibit`.
"""

EXHIBITS: dict[str, str] = {
    "sun2018/theorem1": "experiments.papers.sun2018.theorem1",
}
"""Name of each exhibit, "paper/exhibit", to the module with its `EXHIBIT`."""
