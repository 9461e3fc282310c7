"""Verdicts on the claims of the papers: for every claim whether it holds, why, and the figure that shows it.

Sun: Sun, Dong, Wang, Yu, Qin, Big Data 2018. Li: Li et al., KDD 2018. Wang: Wang and Xu, private Dawid-Skene.
Huai: Huai et al., IJCAI 2019. They are the tables of `docs/explanation/verdicts.md`, which has the proofs and
counterexamples too; the bounds are in `experiments.theory.published_bounds`.
"""

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verdicts.md"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What re-deriving one claim gave.

    Attributes:
        claim: paper, number and what is claimed, in a few words.
        holds: "yes"; "in part": under conditions that `why` names; "no": there is a counterexample; "not shown": the
            printed proof does not establish it and no counterexample is known to us.
        why: the reason, in one or two sentences.
        figure: the number that shows it; a test computes it again.
    """

    claim: str
    holds: str
    why: str
    figure: str


def read_verdicts(page: Path = PAGE) -> tuple[Verdict, ...]:
    """Return the rows of the tables of a page, one verdict per claim."""
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    verdicts = [row for row in rows if not row.startswith(("| claim", "| ---"))]
    return tuple(Verdict(*row.removeprefix("| ").removesuffix(" |").split(" | ")) for row in verdicts)


VERDICTS = read_verdicts()
"""A test recomputes every figure."""
