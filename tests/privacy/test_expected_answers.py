"""Expected answers: prior, participation rate and worker model of a design objective."""

from pathlib import Path

import numpy as np
import pytest

from crowdveil.channel_design import normal_worker_model, one_coin_worker_model
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import Designed, QuantizedResponse
from crowdveil.privacy.mechanism_settings import Expectation, MechanismSettings, build_mechanism, parameters

RATINGS, GRID = Categories(("low", "middle", "high"), ordered=True), Scale(0, 9)


def write_prior(folder: Path, rows: str) -> Path:
    """Write a file with a prior."""
    path = folder / "prior.csv"
    path.write_text("label,probability\n" + rows, "utf-8")
    return path


def test_a_prior_is_read_in_the_order_of_the_labels(tmp_path: Path) -> None:
    """Rows may stand in any order; rate and ability are passed on."""
    prior = write_prior(tmp_path, "high,0.25\nlow,0.5\nmiddle,0.25\n")
    objective = Expectation(prior=prior, participation_rate=0.2, ability=0.9).objective(RATINGS, "protected")

    assert [0.5, 0.25, 0.25] == objective.prior.tolist()
    assert (0.2, "protected") == (objective.participation_rate, objective.participation)
    np.testing.assert_allclose(one_coin_worker_model(3, 0.9)[None], objective.worker_model)


def test_the_default_prior_is_uniform() -> None:
    """By default labels are equally likely, everyone answers and is right with 0.75; sigmas describe a scale."""
    labels = Expectation().objective(RATINGS, "public")
    numbers = Expectation(sigmas=(1.0, 5.0)).objective(GRID, "public")

    assert [1 / 3] * 3 == pytest.approx(labels.prior)
    assert (1.0, 0.75) == (labels.participation_rate, pytest.approx(labels.worker_model[0, 0, 0]))
    np.testing.assert_allclose(normal_worker_model(GRID, (1.0, 5.0)), numbers.worker_model)


def test_expectations_of_another_alphabet_are_refused(tmp_path: Path) -> None:
    """Sigmas for labels, sigmas with an ability, a prior about something else or of some labels only."""
    with pytest.raises(SettingsError, match="sigmas"):
        Expectation(sigmas=(1.0,)).objective(RATINGS, "public")
    with pytest.raises(SettingsError, match="sigmas"):
        Expectation(sigmas=(1.0,), ability=0.5).objective(GRID, "public")
    with pytest.raises(ReportsError, match="huge"):
        Expectation(prior=write_prior(tmp_path, "huge,0.25\nlow,0.5\nmiddle,0.25\n")).objective(RATINGS, "public")
    with pytest.raises(ReportsError, match="high"):
        Expectation(prior=write_prior(tmp_path, "low,0.5\nmiddle,0.5\n")).objective(RATINGS, "public")


def test_cuts_are_named_by_labels() -> None:
    """A cut is the first label of a block; without cuts they are chosen; a word that is no label is refused."""
    given = build_mechanism(
        MechanismSettings(name="quantized-response", epsilon=1.0, cuts=("middle",)), RATINGS, tasks=1
    )

    assert isinstance(given, QuantizedResponse)
    assert (1,) == given.cuts
    with pytest.raises(SettingsError, match="first label of a block"):
        build_mechanism(MechanismSettings(name="quantized-response", epsilon=1.0, cuts=("x",)), RATINGS, tasks=1)


def test_the_design_depends_on_the_expected_answers(tmp_path: Path) -> None:
    """Most truths 0, few answers: the designed channel asks whether it is 0; its integers are no parameter."""
    prior = write_prior(tmp_path, "0,0.693\n1,0.24\n2,0.06\n" + "".join(f"{k},0.001\n" for k in range(3, 10)))
    expected = Expectation(prior=prior, participation_rate=0.1, sigmas=(1.0, 5.0))
    built = build_mechanism(MechanismSettings(name="designed", epsilon=1.0, expected=expected), GRID, tasks=1)

    assert isinstance(built, Designed)
    assert ("0", "1..9", "NULL") == built.outputs
    assert {"epsilon", "outputs"} == parameters(built).keys()
