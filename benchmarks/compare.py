"""crowdveil and crowd-kit in turn, in processes of their own: medians of ratios, memory of each, labels compared.

`python benchmarks/compare.py --peer PEER_PYTHON` (an interpreter that has crowd-kit; without it one is made with
`python -m venv` and pip, in a temporary folder). Ratios are taken within a round, so that a busy machine slows both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
from made_up import crowd

HERE = Path(__file__).parent
PEER = "crowd-kit==1.4.2"


def peer_python(folder: Path) -> str:
    """Make a virtual environment with the peer, and return its interpreter."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", PEER, "pyarrow"], check=True)
    return python


def fit_once(python: str, program: str, method: str, steps: int, table: Path, labels: Path) -> dict[str, float]:
    """Return what one process measured."""
    command = [python, str(HERE / "fit_once.py"), program, method, str(steps), str(table), str(labels)]
    # The peer must not find crowdveil's own packages on its path.
    names = {name: word for name, word in os.environ.items() if program == "crowdveil" or name != "PYTHONPATH"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=names)
    return json.loads(done.stdout.splitlines()[-1])


def compare(peer: str, method: str, steps: int, answers: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Return medians over the rounds, of ratios too, and the share of equal labels."""
    table, own, other = folder / f"{answers}.parquet", folder / "own.npy", folder / "other.npy"
    if not table.exists():
        crowd(answers).to_parquet(table)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(fit_once(sys.executable, "crowdveil", method, steps, table, own))
        theirs.append(fit_once(peer, "crowd-kit", method, steps, table, other))
    pairs = list(zip(ours, theirs, strict=True))
    return {
        "method": method,
        "steps": steps,
        "answers": answers,
        "seconds": statistics.median(one["seconds"] for one in ours),
        "peer seconds": statistics.median(one["seconds"] for one in theirs),
        "ratio": statistics.median(b["seconds"] / a["seconds"] for a, b in pairs),
        "processor seconds": statistics.median(one["processor"] for one in ours),
        "peer processor seconds": statistics.median(one["processor"] for one in theirs),
        "processor ratio": statistics.median(b["processor"] / a["processor"] for a, b in pairs),
        "least processor ratio": min(b["processor"] / a["processor"] for a, b in pairs),
        "MB": max(one["memory"] for one in ours),
        "peer MB": max(one["memory"] for one in theirs),
        "equal labels": float(np.mean(np.load(own) == np.load(other))),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Print one line per method and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="interpreter that has crowd-kit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="updates after the majority vote")
    parser.add_argument("--methods", nargs="+", default=["majority-vote", "dawid-skene", "one-coin"])
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e4, 1e5])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = given.peer or peer_python(folder / "peer")
        for method in given.methods:
            for size in given.sizes:
                print(json.dumps(compare(peer, method, given.steps, int(size), given.rounds, folder)), flush=True)


if __name__ == "__main__":
    main()
