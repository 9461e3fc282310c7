"""Exhibits of the papers: every table and figure as a program that `crowdveil reproduce` runs.

The names of the exhibits, each with its module; see `experiments.papers.exhibit`.
"""

EXHIBITS: dict[str, str] = {
    "sun2018/table2": "experiments.papers.sun2018.table2",
    "sun2018/figure1": "experiments.papers.sun2018.figure1",
    "sun2018/figure2": "experiments.papers.sun2018.figure2",
    "sun2018/figure3": "experiments.papers.sun2018.figure3",
    "sun2018/figure4": "experiments.papers.sun2018.figure4",
    "sun2018/figure5": "experiments.papers.sun2018.figure5",
    "sun2018/parameters": "experiments.papers.sun2018.parameters",
    "sun2018/theorem1": "experiments.papers.sun2018.theorem1",
    "sun2018/theorem2": "experiments.papers.sun2018.theorem2",
    "sun2018/theorem3": "experiments.papers.sun2018.theorem3",
    "sun2018/theorem4": "experiments.papers.sun2018.theorem4",
    "sun2018/theorem5": "experiments.papers.sun2018.theorem5",
    "sun2018/participation": "experiments.papers.sun2018.participation",
    "huai2019/table1": "experiments.papers.huai2019.table1",
    "huai2019/table2": "experiments.papers.huai2019.table2",
    "huai2019/figure1": "experiments.papers.huai2019.figure1",
    "huai2019/figure3": "experiments.papers.huai2019.figure3",
    "huai2019/figure4": "experiments.papers.huai2019.figure4",
    "huai2019/figure5": "experiments.papers.huai2019.figure5",
    "wang2018/theorem1": "experiments.papers.wang2018.theorem1",
    "wang2018/theorem2": "experiments.papers.wang2018.theorem2",
    "wang2018/condition16": "experiments.papers.wang2018.condition16",
    "wang2018/theorem3": "experiments.papers.wang2018.theorem3",
    "wang2018/theorem4": "experiments.papers.wang2018.theorem4",
    "li2018/table1": "experiments.papers.li2018.table1",
    "li2018/table2": "experiments.papers.li2018.table2",
    "li2018/table3": "experiments.papers.li2018.table3",
    "li2018/figure1": "experiments.papers.li2018.figure1",
    "li2018/figure2": "experiments.papers.li2018.figure2",
    "li2018/figure3": "experiments.papers.li2018.figure3",
    "li2018/figure4": "experiments.papers.li2018.figure4",
    "li2018/section62": "experiments.papers.li2018.section62",
    "li2018/epsilon_zero": "experiments.papers.li2018.epsilon_zero",
    "li2018/other_distributions": "experiments.papers.li2018.other_distributions",
    "wang2018/abilities_by_task": "experiments.papers.wang2018.abilities_by_task",
    "beyond/summary": "experiments.papers.beyond.summary",
}
"""Name of each exhibit, "paper/exhibit", to the module with its `EXHIBIT`."""
