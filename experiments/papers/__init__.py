"""Tables, figures and theorems of the papers behind crowdveil as programs; see `experiments.papers.exhibit`."""

from experiments.papers.exhibit import exhibits_of

PAPERS = ("sun2018", "huai2019", "wang2018", "li2018", "beyond")
EXHIBITS = tuple(f"{paper}/{stem}" for paper in PAPERS for stem in exhibits_of(paper))
"""Name of each exhibit, "paper/exhibit"."""
