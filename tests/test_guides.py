"""The guides for a new mechanism and a new estimator, carried out to the letter in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
GUIDES = ROOT / "docs" / "how-to"
ESTIMATORS = Path("src", "crowdveil", "estimators")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy what the tests of a new class read."""
    for name in ("src", "tests", "experiments", "docs"):
        left_out = ("__pycache__", "results") if name == "experiments" else ("__pycache__",)
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*left_out))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a guide."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (GUIDES / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


def register(project: Path, table: str, line: str) -> None:
    """Add a line to a table of the registry."""
    path = project / "src" / "crowdveil" / "registry.py"
    text, start = path.read_text("utf-8"), rf"({table}: Mapping\[.*?\] = entries_by_name\(\n)"
    path.write_text(re.sub(start, lambda found: found[1] + line, text, count=1), "utf-8")


def run_tests(project: Path, *words: str) -> str:
    """Run tests of the copy; return the last line."""
    # Options of the outer run, such as those of coverage, are not for this one.
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=project,
        env={**kept, "PYTHONPATH": str(project / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return re.sub(r".*?(\d+ passed).*", r"\1", done.stdout.splitlines()[-1])


def test_the_guide_to_a_mechanism_works(project: Path) -> None:
    """Its file and its line pass the contract of mechanisms, and the tests of layers and sizes."""
    (code,) = blocks("add-a-mechanism.md", "python")
    (line,) = blocks("add-a-mechanism.md", "text")
    (project / "src" / "crowdveil" / "mechanisms" / "low_or_high.py").write_text(code, "utf-8")
    register(project, "MECHANISM_ENTRIES", line)

    contract = run_tests(project, "tests/mechanisms/test_mechanism_contract.py", "-k", "LowOrHigh or low-or-high")
    assert int(contract.split()[0]) > 20
    assert "passed" in run_tests(project, "tests/test_layers.py", "tests/test_sizes.py", "-k", "not is_of_readable")


def test_the_guide_to_an_estimator_works(project: Path) -> None:
    """A copy of the smallest estimator and its line pass the contract of estimators, and the tests of layers."""
    line = next(one for one in blocks("add-an-estimator.md", "text") if "EstimatorEntry" in one)
    code = (project / ESTIMATORS / "weighted_vote.py").read_text("utf-8")
    renamed = code.replace('"weighted-vote"', '"second-vote"').replace("class WeightedVote", "class SecondVote")
    (project / ESTIMATORS / "second_vote.py").write_text(renamed, "utf-8")
    register(project, "ESTIMATOR_ENTRIES", line)

    contract = run_tests(project, "tests/estimators/test_estimator_contract.py", "-k", "second-vote")
    assert int(contract.split()[0]) > 10
    assert "passed" in run_tests(project, "tests/test_layers.py")
