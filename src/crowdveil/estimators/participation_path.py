"""How participation follows a worker's ability: a few more answers, each less good, make the same reports.

Behind a channel that hides who answered, neither is known for sure. Along the path on which participation stays as
likely as it can be, the curvature of the log-likelihood is what is left of the ability's own when participation is
integrated out (to second order): the Schur complement.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimators.ability_interval import Path, Spread, slope_tables
from crowdveil.estimators.confusion_parameters import CrowdParameters

NEVER = 1e-6
"""Participation is taken to be so far from 0 and 1 at least: its Beta law has no slope there."""


def let_participation_follow(
    spread: Spread, path: Path, parameters: CrowdParameters, reports: NDArray[np.float64]
) -> tuple[Spread, Path]:
    """Return the path on which participation changes with the ability, and what its law then tells of the ability.

    How far it follows is read off complete truths; any other distance would only overstate what is known.

    Args:
        spread, path: with participation as it is.
        parameters: of the fit's end; participation is protected.
        reports: posterior sums over all reports, indexed [worker, truth, report].
    """
    assert path.tables is not None
    pool, cells, still = parameters.pool, parameters.pseudo_cells, np.zeros_like(path.direction)
    of_share = slope_tables(path.tables, still, parameters, np.ones(len(still)))
    of_ability = slope_tables(path.tables, path.direction, parameters)
    share = np.clip(parameters.participation, NEVER, 1 - NEVER)
    answered, silent = pool.participation / share, (1 - pool.participation) / (1 - share)
    bend = cells * (answered / share + silent / (1 - share))
    uphill = (reports * of_share).sum(axis=(1, 2)) + cells * (answered - silent)
    together = (reports * of_ability * of_share).sum(axis=(1, 2))
    follows = -together / ((reports * of_share**2).sum(axis=(1, 2)) + bend)
    excess = spread.excess + spread.ability * (1 - spread.ability) * follows * uphill
    return replace(spread, excess=excess, beside=follows**2 * bend), replace(path, participation=follows)
