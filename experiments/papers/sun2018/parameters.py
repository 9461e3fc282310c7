"""Parameters that section VI-A does not print, each changed alone at sparsity 0.9."""

from typing import Any

from experiments.papers.exhibit import Configuration, Row, Size, Verdict
from experiments.papers.sun2018.accuracy import step
from experiments.papers.sun2018.published import MECHANISMS

CLAIMS: dict[Size, tuple[float, ...]] = {"quick": (1.0,), "default": (0.1, 1.0, 5.0), "full": (0.1, 0.5, 1.0, 3.0, 5.0)}
REPEATS: dict[Size, int] = {"quick": 1, "default": 5, "full": 20}
OF_MECHANISMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MF", {}),
    ("MF", {"dimensions": 2}),
    ("MF", {"dimensions": 20}),
    ("MF", {"dimensions": 50}),
    ("MF", {"ridge": 1e-6}),
    ("MF", {"ridge": 1.0}),
    ("MF", {"profiles": "uniform"}),
    ("MF", {"dimensions": 20, "ridge": 1e-6}),
    ("MF", {"dimensions": 2, "ridge": 1.0}),
    ("RR", {}),
    ("LP", {}),
    *(("LP", {"null": value}) for value in ("0", "1", "2")),
    ("2-Layer", {}),
    ("2-Layer", {"low": 0.5}),
)
"""Changed parameters of mechanisms; {} is the main row."""
OF_CROWDS: tuple[dict[str, Any], ...] = ({"rounding": "down"}, {"scored": "raw"})
CHANGED_CROWDS = ("answers rounded down", "raw truths scored")
"""Changed parameters of the crowd, and their texts."""


def configurations(size: Size) -> list[Configuration]:
    """Return one step per epsilon and change."""
    workers, tasks = (1000, 100) if size == "quick" else (2000, 200)
    crowd: dict[str, Any] = {"workers": workers, "tasks": tasks, "sparsity": 0.9, "repeats": REPEATS[size]}
    changed = [(name, one) for one in OF_CROWDS for name in MECHANISMS]
    return [step(name, epsilon, **crowd, **one) for epsilon in CLAIMS[size] for name, one in (*OF_MECHANISMS, *changed)]


def is_of_changed_crowd(row: Row) -> bool:
    """Return whether a parameter of the crowd is changed."""
    return str(row["setting"]).endswith(CHANGED_CROWDS)


def verdict(rows: list[Row]) -> Verdict:
    """Return that no swept setting of MF is better than the constant, and at how many MF is ahead of RR and LP."""
    factorizations = [row for row in rows if row["mechanism"] == "MF"]
    correlation = max(abs(row["correlation"]) for row in factorizations)
    spread = [row["change"] for row in factorizations]
    trivial = all(row["constant"] < row["error"] for row in factorizations)
    crowd = [row for row in rows if not is_of_changed_crowd(row)]
    swept = [row for row in crowd if row["mechanism"] == "MF"]
    drawn, constant = (_ahead(crowd, swept, null) for null in ("a uniform draw", "0"))
    kept = {row["claimed_epsilon"] for row in constant}
    lost = [epsilon for epsilon in dict.fromkeys(row["claimed_epsilon"] for row in swept) if epsilon not in kept]
    sentence = (
        f"the MAE change of MF lies between {min(spread):.2f} and {max(spread):.3g} over the epsilons and settings "
        f"swept; at all of them the constant 0 has a smaller error, and the correlation with the truth is at most "
        f"{correlation:.2f}. MF has the smallest MAE change of RR, LP and MF, as printed, at {len(drawn)} of "
        f"{len(swept)} pairs of a setting and an epsilon where LP draws its NULL uniformly, and at {len(constant)} "
        f"where NULL becomes 0, which Theorem 1 allows: there LP is ahead of every swept MF at epsilon "
        f"{', '.join(f'{epsilon:g}' for epsilon in lost)}."
    )
    return Verdict(
        "reproduced but trivial", sentence, trivial and correlation < 0.35 and len(constant) < len(drawn) < len(swept)
    )


def _ahead(rows: list[Row], swept: list[Row], null: str) -> list[Row]:
    """Return the rows of MF with a smaller MAE change than RR, and than LP with this value of NULL."""
    rivals = [row for row in rows if row["mechanism"] == "RR" or row["setting"] == f"NULL becomes {null}"]
    return [
        row
        for row in swept
        if all(row["change"] < one["change"] for one in rivals if one["claimed_epsilon"] == row["claimed_epsilon"])
    ]


def _name(row: Row) -> str:
    return f"{row['mechanism']}: {row['setting']}" if row["setting"] else str(row["mechanism"])
