"""Estimators are built from words, and what cannot be is refused."""

from pathlib import Path

import pytest

from crowdveil import Gaussian
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.folder.evidence import Evidence, Reading, read_evidence
from crowdveil.inference.methods import Method, build_estimator


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Return two reports of ordered labels, read as answers."""
    (tmp_path / "reports.csv").write_text("task,worker,label\na,u,lo\nb,v,hi\n")
    return read_evidence(tmp_path / "reports.csv", Reading(alphabet=Categories(("lo", "hi"), ordered=True)))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_registered_estimator_can_be_asked_for(name: str, evidence: Evidence) -> None:
    """A name with steps and a tolerance gives the registered class with these settings, and without them its own."""
    built = build_estimator(Method(name=name, max_steps=3, tolerance=0.5), evidence)

    assert (ESTIMATORS[name], 3, 0.5) == (type(built), built.max_steps, built.tolerance)
    assert ESTIMATORS[name]() == build_estimator(Method(name=name), evidence)


def test_a_normal_prior_reaches_gaussian(evidence: Evidence) -> None:
    """Mean and deviation are settings of the estimator, as the others are."""
    method = Method(name="gaussian", prior_mean=40.0, prior_deviation=20.0, tolerance=0.5)

    assert Gaussian(prior_mean=40.0, prior_deviation=20.0, tolerance=0.5) == build_estimator(method, evidence)


def test_public_deviations_reach_gaussian(evidence: Evidence) -> None:
    """The classes of workers' deviations are those given."""
    assert Gaussian(sigmas=(1.0, 5.0)) == build_estimator(Method(name="gaussian", sigmas=(1.0, 5.0)), evidence)


@pytest.mark.parametrize(
    "method",
    [
        Method(name="nonsense"),
        Method(max_steps=0),
        Method(tolerance=-1.0),
        Method(tolerance=float("inf")),
        Method(name="gaussian", prior_mean=0.0),
        Method(name="gaussian", prior_mean=0.0, prior_deviation=-1.0),
        Method(name="one-coin", prior_mean=0.0, prior_deviation=1.0),
        Method(name="one-coin", sigmas=(1.0,)),
        Method(name="gaussian", sigmas=(1.0, -5.0)),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(method: Method, evidence: Evidence) -> None:
    """Unknown methods, no steps, impossible tolerances and normal priors that are none raise SettingsError."""
    with pytest.raises(SettingsError):
        build_estimator(method, evidence)
