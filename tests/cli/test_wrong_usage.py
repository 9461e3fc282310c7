"""Wrong usage ends with exit code 2, a refused value with 1: each in one line that names the rule."""

import shlex

import pytest

from tests.cli.conftest import LABELS, LISTS, Refusal, Run, write

ENORMOUS = "9" * 320
RESPONSE = "perturb labels.csv --mechanism randomized-response --epsilon 1 --out out"
NUMBERS = "perturb numbers.csv --scale -2:7 --epsilon 1 --seed 1 --out out"
ACCOUNT = "account --mechanism randomized-response --labels no,yes,maybe --tasks 10"
PLAN = "plan --tasks 40 --workers 30 --participation-rate 0.5"
LABELLED = f"{PLAN} --labels no,yes,maybe --target-error 0.2"
ASSIGN = f"data assign {' '.join(LISTS)} --out asked.csv"
WRONG = {
    "perturb labels.csv --mechanism nonsense --epsilon 1 --out out": "'nonsense' is not one of",
    "perturb labels.csv --mechanism laplace --out out": "--epsilon",
    f"{RESPONSE} --low 0.1": "--low is an option of two-layer",
    f"{RESPONSE} --null-value 0": "--null-value is an option of laplace",
    f"{RESPONSE} --labels a,b --scale 0:9": "--labels or --scale, not both",
    f"{RESPONSE} --ordered": "--ordered is an option of --labels",
    f"{RESPONSE} --scale 0-9": "is not LOW:HIGH",
    f"{RESPONSE} --seed -1": "--seed",
    "perturb labels.csv --mechanism two-layer --high 0.4 --out out": "--high goes with --low",
    "perturb labels.csv --mechanism two-layer --epsilon 1 --low 0 --high 1 --out out": "--high goes with --low",
    f"{NUMBERS} --mechanism one-layer --cuts 3": "--cuts is an option of quantized-response",
    f"{NUMBERS} --mechanism designed --cuts 3": "--cuts is an option of quantized-response",
    f"{NUMBERS} --mechanism one-layer --prior prior.csv": "--prior is an option of",
    f"{NUMBERS} --mechanism quantized-response --cuts 3 --participation-rate 0.1": "without --cuts",
    f"{NUMBERS} --mechanism designed --sigmas one": "not a list of numbers",
    "infer labels.csv --max-steps 0": "--max-steps",
    "infer labels.csv --labels '\"a\"4,b'": "closed quotes",
    "infer labels.csv --labels 'a\nb'": "separated by commas",
    "infer labels.csv --certificate c.json --no-certificate": "not both",
    "infer labels.csv --prior-mean 0": "--prior-deviation go together",
    "infer labels.csv --prior-mean 0 --prior-deviation 1 --method one-coin": "--prior-deviation go together",
    "infer labels.csv --method one-coin --sigmas 1,5": "--sigmas goes with",
    "infer labels.csv --method gaussian --sigmas 1,x": "not a list of numbers",
    "infer labels.csv --method david-skene": "Did you mean 'dawid-skene'?",
    "infer labels.csv --memory many": "'many' is not a size",
    "infer ''": "Invalid value for 'REPORTS...'",
    "infer labels.csv --truths no,yes --method dawid-skene": "--method does not go with --truths",
    "infer labels.csv --truths no,yes --memory 1GB": "--memory does not go with --truths",
    "infer sums.json --prior prior.csv": "Sums go with --method",
    "infer sums.json --memory 1GB": "Sums go with --method",
    "infer sums.json --engine dask": "Sums go with --method",
    "infer sums.json --merge-labels": "Sums go with --method",
    "infer sums.json --save-fit one.fit": "Sums go with --method",
    "next labels.csv --gold gold.csv --budget 5 --per-worker 2": "--per-worker does not go with --gold",
    "conclude labels.csv --gold gold.csv --compare a": "two workers",
    "import tolka a.csv --out b.csv": "Did you mean 'toloka'?",
    "account --mechanism randomized-response --epsilon 1 --tasks 10": "--labels or --scale is needed",
    f"{ACCOUNT} --budget 5 --epsilon 1": "--budget",
    ACCOUNT: "--budget",
    f"{ASSIGN} --per-task 2 --budget 4 --epsilon 1": "--per-task",
    f"{ASSIGN} --budget 4": "--per-task",
    ASSIGN: "--per-task",
    f"{ASSIGN} --per-task 2 --gold tasks.csv": "go together",
    f"{PLAN} --target-error 0.1": "--labels or --scale is needed",
    f"{LABELLED} --epsilon one": "not a list of numbers",
    f"{PLAN} --labels no,yes": "--budget",
    f"{PLAN} --labels no,yes --budget 2 --epsilon 1": "--budget",
    f"{PLAN} --labels no,yes --budget 2 --assigned-per-task 3": "--budget",
    "nonsense": "No such command",
    **{
        f"{command} {ENORMOUS}": "1000000000000"
        for command in (
            *("account --mechanism two-layer --tasks 3 --answers", "data assign --per-task"),
            *("infer labels.csv --max-steps", "plan --tasks", "plan --workers"),
            "account --mechanism matrix-factorization --tasks 3 --dimensions",
            *(f"data synthesize x --{name}" for name in ("records", "most-claims", "least-claims", "bins")),
        )
    },
}
"""Command lines by what their error says."""
REFUSED = {
    f"{LABELLED} --assigned-per-task 31": "a task is assigned to 1 to 30 workers",
    f"{LABELLED} --epsilon 30": "epsilon",
    f"{LABELLED} --sigmas 1,2": "sigmas describe workers on a scale",
    f"{LABELLED} --method gaussian": "the method of a plan for these answers is dawid-skene or",
    f"{PLAN} --scale 0:4 --target-error 0.1 --ability 0.8": "described by sigmas, not by ability",
    "infer labels.csv --method weighted-mean": "ordered labels",
    "infer labels.csv --method factorization-mean": "the method must be one of",
    "infer labels.csv --sigmas 1,5": "are settings of gaussian",
    "infer labels.csv --tolerance nan": "tolerance",
    "infer labels.csv --tolerance -1": "tolerance",
    "infer labels.csv --certificate none.json": "none.json: the file must exist and be readable",
    "infer numbers.csv --method dawid-skene": "needs labels",
    "infer labels.csv --memory 100": "memory must be at least",
    "infer labels.csv --engine threads --address tcp://10.0.0.1:8786": "the engine threads has no address",
    "infer labels.csv --out numbers.csv": "'numbers.csv'",
    "infer labels.csv --prior other.csv": "exactly the labels",
    "infer labels.csv --prior other.csv --method weighted-vote": "no prior",
    f"{RESPONSE.replace('out out', 'out numbers.csv')} --lists-from-answers": "'numbers.csv'",
    "next labels.csv --budget 2 --workers ann,bob": "CSV file with the column worker",
    "next numbers.csv --budget 2": "labels only",
    **{
        RESPONSE.replace("epsilon 1", f"epsilon {epsilon}"): "epsilon must be in [1e-06, 20]"
        for epsilon in ("0", "-1", "nan", "1e9", "inf", "1e-9")
    },
    f"{NUMBERS} --mechanism laplace --null-value 0.5": "value of the domain",
    f"{NUMBERS} --mechanism laplace --null-value centre": "value of the domain",
    f"{NUMBERS} --mechanism matrix-factorization-published": "dimensions",
    f"{RESPONSE.replace('randomized-response', 'matrix-factorization')}": "numeric answers",
    f"perturb labels.csv --mechanism two-layer --epsilon 1 --answers 3 --labels {','.join(LABELS)} {' '.join(LISTS)} "
    "--out out": "1..3 cells",
    **{
        f"{ACCOUNT} --epsilon 1 {option} {ENORMOUS}": f"{option[2:]} must be from 1 to 1,000,000,000,000"
        for option in ("--tasks", "--rounds")
    },
}
"""Command lines by the rule that their error names."""


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:60])
def test_wrong_usage_ends_with_two(line: str, run: Run) -> None:
    """What could never work, whatever the files hold, is wrong usage, and nothing is written."""
    result = run(*shlex.split(line), code=2)

    assert "" == result.stdout
    assert "Usage: " in result.stderr
    assert WRONG[line] in " ".join(result.stderr.split())


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line[:60])
def test_values_out_of_range_are_refused(line: str, refusal: Refusal) -> None:
    """A value that does not fit ends with one line that states the rule."""
    write("other.csv", "label,probability", "no,0.5", "yes,0.5")

    assert REFUSED[line] in refusal(*shlex.split(line))
