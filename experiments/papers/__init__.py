"""Tables, figures and theorems of the papers behind crowdveil as programs.

`EXHIBITS` has the names of the exhibits, each with its module; see `experiments.papers.exhibit`.
"""

from experiments.papers.exhibit import exhibits_of, module_of

PAPERS = ("sun2018", "huai2019", "wang2018", "li2018", "beyond")
EXHIBITS: dict[str, str] = {
    name: module_of(name) for paper in PAPERS for stem in exhibits_of(paper) if (name := f"{paper}/{stem}")
}
"""Name of each exhibit, "paper/exhibit", to the module that measures it."""
