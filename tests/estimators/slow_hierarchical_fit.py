"""Hierarchical Dawid-Skene by its equations as loops: first weights, steps, and probabilities of independence."""

from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np

from crowdveil import HierarchicalDawidSkene, Reports

Rows = list[tuple[int, int, int]]
LEARNING_STEPS = (0, 1, 2, 4, 7)


class SlowFit(NamedTuple):
    """Posterior [task, label], abilities of the confusion matrices (workers,), weight of the own prior, and
    probabilities of independence (workers,) before and after the steps."""

    posterior: np.ndarray
    ability: np.ndarray
    weight: float
    first: np.ndarray
    independent: np.ndarray


def rows_of(reports: Reports) -> Rows:
    """Return (task, worker, label) codes."""
    return list(zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True))


def dirichlet_multinomial(counts: np.ndarray, pseudo_counts: np.ndarray) -> float:
    """Return D, the log-probability of a sequence with these counts."""
    total = lgamma(pseudo_counts.sum()) - lgamma((pseudo_counts + counts).sum())
    return total + sum(lgamma(a + n) - lgamma(a) for n, a in zip(counts, pseudo_counts, strict=True))


def sigma(odds: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + exp(-odds)) if odds > -700 else 0.0


def frequencies(rows: Rows, labels: int, weights: np.ndarray) -> np.ndarray:
    """Return the shares of labels among answers with weights of workers, and one pseudo-count each."""
    counts = np.ones(labels)
    for _, worker, label in rows:
        counts[label] += weights[worker]
    return counts / counts.sum()


def updated(share: float, label_evidence: np.ndarray, informed: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probabilities of independence and their learned share."""
    odds = [log(share / (1 - share)) + one - other for one, other in zip(label_evidence, informed, strict=True)]
    probability = np.array([sigma(one) for one in odds])
    return probability, (probability.sum() + 1) / (len(probability) + 10)


def first_probabilities(rows: Rows, workers: int, labels: int) -> np.ndarray:
    """Return the probabilities of independence from the votes of others, after three rounds."""
    p, probability, share = frequencies(rows, labels, np.ones(workers)), np.zeros(workers), 0.1
    for _ in range(3):
        sums = np.zeros((workers, labels, labels))
        for task, worker, label in rows:
            votes = np.zeros(labels)
            for other_task, other, other_label in rows:
                if other_task == task and other != worker:
                    votes[other_label] += 1 - probability[other]
            if votes.sum() > 0:
                sums[worker, :, label] += votes / votes.sum()
        crowd = np.full((labels, labels), 0.5)
        for worker in range(workers):
            crowd += (1 - probability[worker]) * sums[worker]
        own, informed = np.zeros(workers), np.zeros(workers)
        for worker in range(workers):
            own[worker] = dirichlet_multinomial(sums[worker].sum(axis=0), 2 * p)
            for truth in range(labels):
                prior = 0.5 + 3 * crowd[truth] / crowd[truth].sum()
                informed[worker] += dirichlet_multinomial(sums[worker, truth], prior)
        probability, share = updated(share, own, informed)
    return probability


def slow_fit(reports: Reports, steps: int, own: HierarchicalDawidSkene) -> SlowFit:
    """Return the fit of the model after some steps."""
    tasks, workers, labels = len(reports.tasks), len(reports.workers), reports.labels
    rows = rows_of(reports)
    first = first_probabilities(rows, workers, labels)
    share, start = frequencies(rows, labels, np.ones(workers)), frequencies(rows, labels, 1 - first)
    votes, likelihood = np.zeros((tasks, labels)), np.tile(start, (tasks, 1))
    for task, worker, label in rows:
        votes[task, label] += 1 - first[worker]
        for truth in range(labels):
            mean = own.anchor_ability * (truth == label) + (1 - own.anchor_ability) * start[label]
            likelihood[task, truth] *= mean ** (1 - first[worker])
    votes /= votes.sum(axis=1, keepdims=True)
    posterior = start.max() * likelihood / likelihood.sum(axis=1, keepdims=True) + (1 - start.max()) * votes
    label_counts = np.array([[sum(r[1:] == (w, y) for r in rows) for y in range(labels)] for w in range(workers)])
    label_evidence = np.array([dirichlet_multinomial(counts, 2 * share) for counts in label_counts])
    independent, independent_share = first, 0.1
    for step in range(steps - 1):
        counts = np.zeros((workers, labels, labels))
        for task, worker, label in rows:
            counts[worker, :, label] += posterior[task]
        weighted = counts * (1 - independent)[:, None, None]
        prior = np.zeros((labels, labels))
        for truth in range(labels):
            total = weighted[:, truth].sum()
            for label in range(labels):
                anchor = own.anchor_ability * (truth == label) + (1 - own.anchor_ability) * share[label]
                typical = (weighted[:, truth, label].sum() + anchor) / (total + 1)
                mean = own.crowd_share * typical + (1 - own.crowd_share) * anchor
                prior[truth, label] = own.smoothing + own.shrinkage * mean
        crowd = (sum(weighted[:, z, z].sum() for z in range(labels)) + 1) / (weighted.sum() + labels)
        means = own_means(counts, share, crowd)
        strength = slow_strength(counts, means, 1 - independent)
        if step in LEARNING_STEPS:
            informed = [informed_evidence(one, prior, share, crowd) for one in counts]
            independent, independent_share = updated(independent_share, label_evidence, np.array(informed))
        counts += prior + max(strength - 20, 0) * means
        confusion = counts / counts.sum(axis=2, keepdims=True)
        classes = posterior.sum(axis=0) + 1 + own.uniform_share * tasks / labels
        classes /= classes.sum()
        scores = np.tile(np.log(classes), (tasks, 1))
        for task, worker, label in rows:
            scores[task] += (1 - independent[worker]) * np.log(confusion[worker, :, label])
        posterior = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    ability = np.einsum("wzz,z->w", confusion, classes)
    return SlowFit(posterior, ability, max(strength - 20, 0) / max(strength, 20), first, independent)


def informed_evidence(counts: np.ndarray, prior: np.ndarray, share: np.ndarray, crowd: float) -> float:
    """Return E0 of a worker from expected answers [truth, label]."""
    labels = len(share)
    rows = sum(dirichlet_multinomial(counts[truth], prior[truth]) for truth in range(labels))
    right = sum(counts[z, z] for z in range(labels))
    wrong = np.array([right, counts.sum() - right])
    errors = sum(counts[z, x] * log(share[x] / (1 - share[z])) for z in range(labels) for x in range(labels) if x != z)
    coins = [dirichlet_multinomial(wrong, s * np.array([crowd, 1 - crowd])) + errors for s in (5.0, 20.0)]
    return max(rows, *coins)


def own_means(counts: np.ndarray, share: np.ndarray, crowd: float) -> np.ndarray:
    """Return the mean of the own prior of each worker and truth, from expected answers [worker, truth, label]."""
    labels, means = len(share), np.zeros_like(counts)
    for worker, table in enumerate(counts):
        ability = (sum(table[z, z] for z in range(labels)) + 2 * crowd) / (table.sum() + 2)
        for truth in range(labels):
            means[worker, truth] = (1 - ability) * share / (1 - share[truth])
            means[worker, truth, truth] = ability
    return means


def slow_strength(counts: np.ndarray, means: np.ndarray, weights: np.ndarray) -> float:
    """Return the strength of the own prior by the method of moments, row by row, with a weight of each worker."""
    excess = pairs = 0.0
    for worker, weight in enumerate(weights):
        for count, mean in zip(counts[worker], means[worker], strict=True):
            total, spread = count.sum(), 1 - (mean**2).sum()
            excess += weight * (((count - total * mean) ** 2).sum() - total * spread)
            pairs += weight * total * max(total - 1, 0) * spread
    return min((pairs + 30) / (max(excess, 0) + 30 / 21) - 1, 200.0)
