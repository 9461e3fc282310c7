"""Made-up crowds for benchmarks: the same for every program, from a seed, with whole numbers for names."""

import numpy as np
import pandas as pd

LABELS = 5


def crowd(answers: int, labels: int = LABELS, seed: int = 0) -> pd.DataFrame:
    """Return columns task, worker and label: ten answers a task, a hundred a worker, in no order, none repeated.

    Abilities are uniform between 0.3 and 0.95, errors uniform over the other labels.
    """
    rng = np.random.default_rng(seed)
    tasks, workers = max(answers // 10, 1), max(answers // 100, 10)
    truth, ability = rng.integers(0, labels, tasks), rng.uniform(0.3, 0.95, workers)
    task, worker = np.divmod(np.unique(rng.integers(0, tasks * workers, answers)), workers)
    wrong = (truth[task] + rng.integers(1, labels, len(task))) % labels
    label = np.where(rng.random(len(task)) < ability[worker], truth[task], wrong)
    mixed = rng.permutation(len(task))
    return pd.DataFrame({"task": task[mixed], "worker": worker[mixed], "label": label[mixed]})
