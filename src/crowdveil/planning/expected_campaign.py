"""Campaign to be planned from what its owner expects: crowd, design objective, and a scale that is affordable."""

from dataclasses import replace

import numpy as np

from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.design.channel_design import normal_worker_model
from crowdveil.design.mechanism_from_settings import USUAL_ABILITY, Expectation
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.mechanisms import ChannelMechanism, Designed, DesignObjective, Laplace
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.population import LabelCrowd, NumberCrowd, beta_abilities, coarsen_prior, coarsen_scale
from crowdveil.planning.prediction import with_crowd_of_pilot
from crowdveil.planning.shared_mistakes import Pilot

DEFAULT_SIGMAS = (0.1, 0.5)
"""Default standard deviations of two halves of the workers, as shares of the range of a scale."""


def expected_campaign(
    alphabet: Alphabet,
    expected: Expectation,
    participation: Participation,
    *,
    tasks: int,
    workers: int,
    assigned_per_task: int | None = None,
    method: str | None = None,
    pilot: Pilot | None = None,
) -> PlannedCampaign:
    """Return the campaign to be planned; a long scale is replaced by a coarser one.

    With a pilot, workers have its ability, and truths its labels unless a prior is expected.

    Raises:
        SettingsError: an ability on a scale or beside a pilot, or a value out of range.
        ReportsError: the file of the prior is damaged.
    """
    if pilot is not None:
        if expected.ability is not None:
            raise SettingsError("the pilot determines the ability", value=expected.ability, hint="Leave it out.")
        expected = replace(expected, ability=pilot.ability)
    objective, crowd = _expected_crowd(alphabet, expected, participation)
    campaign = PlannedCampaign(
        objective=objective,
        crowd=crowd,
        tasks=tasks,
        workers=workers,
        assigned_per_task=assigned_per_task,
        prior_public=expected.prior is not None,
        method=method,
    )
    return campaign if pilot is None else with_crowd_of_pilot(campaign, pilot)


def expected_objective(alphabet: Alphabet, expected: Expectation, participation: Participation) -> DesignObjective:
    """Return the design objective of a plan, on the scale of the answers however long; errors as `expected_campaign`.

    On a scale, workers without stated sigmas have those of `DEFAULT_SIGMAS`.
    """
    if isinstance(alphabet, Scale):
        if expected.ability is not None:
            raise SettingsError(
                "workers on a scale are described by sigmas, not by ability",
                value=expected.ability,
                hint=advice("Give {sigmas} instead of {ability}.", "Give sigmas."),
            )
        expected = replace(expected, sigmas=_sigmas_or_scaled_defaults(alphabet, expected))
    return expected.objective(alphabet, participation)


def _sigmas_or_scaled_defaults(scale: Scale, expected: Expectation) -> tuple[float, ...]:
    return expected.sigmas or tuple(share * scale.range for share in DEFAULT_SIGMAS)


def _expected_crowd(
    alphabet: Alphabet, expected: Expectation, participation: Participation
) -> tuple[DesignObjective, LabelCrowd | NumberCrowd]:
    objective = expected_objective(alphabet, expected, participation)
    if not isinstance(alphabet, Scale):
        abilities = beta_abilities(USUAL_ABILITY if expected.ability is None else expected.ability)
        return objective, LabelCrowd(alphabet=alphabet, prior=objective.prior, abilities=abilities)
    sigmas = _sigmas_or_scaled_defaults(alphabet, expected)
    coarse = coarsen_scale(alphabet, min(sigmas))
    if coarse != alphabet:
        prior = coarsen_prior(objective.prior, alphabet, coarse)
        worker_model = normal_worker_model(coarse, sigmas)
        objective = replace(objective, alphabet=coarse, prior=prior, worker_model=worker_model)
    return objective, NumberCrowd(alphabet=coarse, prior=objective.prior, sigmas=sigmas)


def mechanism_on_plan_scale(alphabet: Alphabet, mechanism: ChannelMechanism) -> ChannelMechanism:
    """Return the mechanism over the scale of the plan, where an answer is sent as the nearest label of the campaign.

    Symbols that are then equally likely for every answer are one symbol. Laplace adds its noise on the plan's scale.
    """
    if mechanism.alphabet == alphabet:
        return mechanism
    if isinstance(mechanism, Laplace):
        return Laplace(alphabet=alphabet, epsilon=mechanism.epsilon, participation=mechanism.participation)
    channel = mechanism.channel()
    nearest = np.abs(alphabet.values[:, np.newaxis] - channel.alphabet.values).argmin(axis=1).tolist()
    inputs = [*nearest, *range(channel.alphabet.size, len(channel.rows))]
    alike: dict[tuple[int, ...], list[int]] = {}
    for symbol, column in enumerate(zip(*(channel.rows[code] for code in inputs), strict=True)):
        alike.setdefault(column, []).append(symbol)
    return Designed(
        alphabet=alphabet,
        participation=channel.participation,
        outputs=tuple(channel.outputs[symbols[0]] for symbols in alike.values()),
        rows=tuple(tuple(channel.rows[code][group[0]] * len(group) for group in alike.values()) for code in inputs),
    )
