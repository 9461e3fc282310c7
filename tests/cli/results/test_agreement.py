"""`crowdveil agreement`: values of the library in a table, a file and JSON; protected reports fail closed."""

from pathlib import Path

from tests.cli.conftest import LISTS, Refusal, Run, RunJson

PERTURB = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", 3, *LISTS, "--out", "sent")


def test_ordered_labels_and_numbers_have_their_metrics(folder: Path, run_json: RunJson) -> None:
    """Ordered labels add the ordinal alpha; numbers have the interval one and a difference."""
    ordered = run_json("agreement", "labels.csv", "--labels", "no,maybe,yes", "--ordered")
    numbers = run_json("agreement", "numbers.csv")

    assert ["nominal", "ordinal"] == list(ordered["alpha"])
    assert (["interval"], "difference") == (list(numbers["alpha"]), numbers["pairwise"]["name"])


def test_protected_reports_are_corrected_or_refused(
    folder: Path, run: Run, run_json: RunJson, refusal: Refusal
) -> None:
    """With a certificate workers are not compared; they have no table, and without one nothing is shown."""
    run(*PERTURB, "--labels", "no,yes,maybe", "--seed", 1)
    data = run_json("agreement", "sent/reports.csv")

    assert (True, None) == (data["channel_used"], data["workers"])
    assert "not compared through a channel" in refusal("agreement", "sent/reports.csv", "--out", "agreement.csv")
    Path("sent/certificate.json").unlink()
    assert "Certificate refused (missing)" in refusal("agreement", "sent/reports.csv")
    assert not Path("agreement.csv").exists()


def test_reports_of_a_mechanism_without_a_certificate_are_refused(folder: Path, run: Run, refusal: Refusal) -> None:
    """Raw agreement of such reports would measure the noise."""
    run("perturb", "labels.csv", "--mechanism", "two-layer", "--epsilon", 1, "--seed", 1, "--out", "sent")

    assert "measures the noise" in refusal("agreement", "sent/reports.csv")
