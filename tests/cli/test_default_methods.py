"""`crowdveil infer` without --method reads the channel of every certificate; a method that cannot is announced."""

from pathlib import Path

import pytest

from crowdveil.registry import MECHANISM_NAMES
from tests.cli.conftest import LABELS, Run, RunJson

ALPHABETS = {
    "labels": ("labels.csv", "--labels", ",".join(LABELS)),
    "two ordered labels": ("two.csv", "--labels", "no,yes", "--ordered"),
    "ordered labels": ("labels.csv", "--labels", "no,maybe,yes", "--ordered"),
    "scale": ("numbers.csv", "--scale", "-2:7"),
}
READERS = dict.fromkeys(ALPHABETS, "hierarchical-dawid-skene") | {"scale": "gaussian"}
LABEL_READERS = "majority-vote, dawid-skene, hierarchical-dawid-skene, one-coin"
EVERY_READER = (
    f"{LABEL_READERS}, ordinal-dawid-skene, pooled-dawid-skene, private-dawid-skene, mace, ebcc, lfc, gaussian, "
    "pooled-gaussian"
)
ANY_READER = {"weighted-vote": "ordered labels", "weighted-mean": "scale"}
WITHOUT_CERTIFICATE = {"two-layer", "sun-two-layer", "matrix-factorization", "matrix-factorization-published"}
NEEDS_ORDER = {"laplace", "piecewise", "ogpm", "square-wave", "staircase", "quantized-response"}
EXTRA = {
    "designed": ("--participation-rate", 0.8),
    "matrix-factorization-published": ("--dimensions", 2),
}


def fits(mechanism: str, alphabet: str, participation: str) -> bool:
    """Return whether the mechanism exists for this alphabet and participation, and is read within seconds."""
    if mechanism == "optimized-unary-encoding" and alphabet == "scale":
        return False  # Hundreds of sets: a warning says that gaussian takes long.
    if mechanism.startswith("matrix-factorization"):
        return alphabet == "scale" and participation == "protected"
    if mechanism == "sun-two-layer" and participation == "public":
        return False
    return mechanism not in NEEDS_ORDER or alphabet != "labels"


CAMPAIGNS = [
    (mechanism, alphabet, participation)
    for mechanism in MECHANISM_NAMES
    for alphabet in ALPHABETS
    for participation in ("protected", "public")
    if fits(mechanism, alphabet, participation)
]


@pytest.fixture
def two_labels(run: Run) -> None:
    """Write a crowd of two labels, `two.csv`."""
    Path("two.csv").write_text(Path("labels.csv").read_text().replace("maybe", "no"))


@pytest.mark.slow
@pytest.mark.usefixtures("two_labels")
@pytest.mark.parametrize(("mechanism", "alphabet", "participation"), CAMPAIGNS)
def test_the_default_method_reads_every_channel(
    mechanism: str, alphabet: str, participation: str, run: Run, run_json: RunJson
) -> None:
    """Every mechanism with a certificate is read through it by default; the others are announced as read as answers."""
    words = (*ALPHABETS[alphabet], "--epsilon", 4, "--participation", participation, *EXTRA.get(mechanism, ()))
    made = run_json("perturb", *words, "--mechanism", mechanism, "--seed", 1, "--out", "sent")
    summed = made["files"][0].endswith("sums.json")
    stderr = run("infer", made["files"][0]).stderr
    data = run_json("infer", made["files"][0])
    assert (20, 30, made["reports"], True) == tuple(data[key] for key in ("tasks", "workers", "reports", "simulation"))

    assert Path("sent/certificate.json").exists() == (mechanism not in WITHOUT_CERTIFICATE)
    if mechanism not in WITHOUT_CERTIFICATE:
        assert (READERS[alphabet], True, "") == (data["method"], data["channel_used"], stderr)
    elif not summed:
        expected = f"Warning: {mechanism} has no channel certificate: no noise model, reports are read as answers."
        assert expected == stderr.strip()
        assert expected.removeprefix("Warning: ") in data["warnings"]


@pytest.mark.parametrize(
    ("method", "alphabet", "readers"),
    [
        ("weighted-vote", "labels", f"{LABEL_READERS}, pooled-dawid-skene, private-dawid-skene, mace, ebcc, lfc"),
        *((method, alphabet, EVERY_READER) for method, alphabet in ANY_READER.items()),
    ],
)
def test_a_method_that_cannot_read_the_channel_says_so_first(
    method: str, alphabet: str, readers: str, run: Run, run_json: RunJson
) -> None:
    """A chosen method without a channel is announced on stderr, with the methods that read one for such truths."""
    run("perturb", *ALPHABETS[alphabet], *("--mechanism", "one-layer", "--epsilon", 3, "--seed", 1, "--out", "sent"))
    stderr = " ".join(run("infer", "sent/reports.csv", "--method", method).stderr.split())
    data = run_json("infer", "sent/reports.csv", "--method", method)

    assert stderr.startswith(f"Warning: {method} reads no channel: it reads reports of one-layer as answers.")
    assert f"Methods that read the channel: {readers}." in stderr
    assert stderr.removeprefix("Warning: ") in data["warnings"]
