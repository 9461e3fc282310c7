"""Verdicts on the claims of the papers: for every claim whether it holds, why, and the figure that shows it.

Sun: Sun, Dong, Wang, Yu, Qin, Big Data 2018. Li: Li et al., KDD 2018. Wang: Wang and Xu, private Dawid-Skene.
Huai: Huai et al., IJCAI 2019. The proofs and counterexamples are in `docs/explanation/verdicts.md`, the bounds in
`experiments.theory.published_bounds`.
"""

from dataclasses import dataclass
from typing import Literal

Holds = Literal["yes", "in part", "no", "not shown"]


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
    holds: Holds
    why: str
    figure: str

    @property
    def row(self) -> str:
        """The verdict as a Markdown table row, as it stands in `docs/explanation/verdicts.md`."""
        return f"| {self.claim} | {self.holds} | {self.why} | {self.figure} |"


VERDICTS: tuple[Verdict, ...] = (
    Verdict(
        "Sun Theorem 1: Laplace reports are epsilon-cell LDP",
        "in part",
        "The noise scale must be the range max - min over epsilon, and answers clipped first. The size of Gamma over "
        "epsilon is safe for the integers 0..9 and wrong as a rule: with Gamma = {0, 100} it gives 50 times the claim.",
        "0.9 (0..9), 50 ({0, 100}) at claimed 1",
    ),
    Verdict(
        "Sun Theorem 2: error of Laplace reports",
        "in part",
        "The example is right and loose (the mean tends to 4.09). It needs weights that do not depend on the "
        "reports and a constant in place of NULL: one worker who answers one of 1,000 tasks, NULL drawn uniformly from "
        "0..9, truths 4.5, epsilon 20 exceeds it.",
        "14.1298; error at least 2.5400 > bound 0.5008",
    ),
    Verdict(
        "Sun slides, page 19: the same example with truth 1 gives 14.13",
        "no",
        "The slide changed the truth from 0 to 1 and kept the result; with truth 1 the formula gives less.",
        "13.2298",
    ),
    Verdict(
        "Sun equation 8: randomized response with NULL is epsilon-cell LDP",
        "yes",
        "Every column holds two values in ratio exp(epsilon), if the rule is read over Gamma and NULL together.",
        "ratio 2.71828 at epsilon 1",
    ),
    Verdict(
        "Sun Theorem 3: error of randomized response",
        "no",
        "None of the readings tried gives the printed 3.551, and Algorithm 1 averages non-NULL reports only, while "
        "the formula counts NULL as 0: in its own example the mean tends to a larger error than the bound.",
        "3.545; 4.433 > 3.551",
    ),
    Verdict(
        'Sun slides, page 22: the same example, "all ground truths are 1", gives 3.551',
        "no",
        "The slide prints mu = 0 and, in words, truths 1. The paper has truths 0; with truths 1 the formula gives "
        "less.",
        "2.553 (truth 1), 3.545 (truth 0)",
    ),
    Verdict(
        "Sun Theorem 4: matrix factorization is epsilon-cell LDP",
        "no",
        "The proof drops u^T v of the one task that only one neighbour answers. It holds between two values with "
        "the same answered, full-rank set of tasks; between NULL and a value the loss is unbounded.",
        "delta 0.0920 at epsilon 1",
    ),
    Verdict(
        "Sun slides, page 24: workers send a differentially private u, and the curator computes u V",
        "no",
        "Algorithm 2 sends u V. A V of full rank gives u back, so both protocols lose the same, and Theorem 4 fails "
        "for both; u has fewer numbers. The slide's V is n x d, so that u V needs its transpose.",
        "100 numbers instead of 1,000 (the setting of Theorem 5); delta 0.0920 at epsilon 1",
    ),
    Verdict(
        "Sun Theorem 5: error of matrix factorization at most 1.80",
        "no",
        "The arithmetic is right, the bound is not: every estimate lies in the row space of V, drawn without "
        "knowing the truths. With half the truths 0, half 9 and unit profiles no estimate at any epsilon has a "
        "smaller error than the floor; with Gaussian V and uniform truths it is 2.20.",
        "1.7979; floor 4.5",
    ),
    Verdict(
        "Sun Table II: sparsities of Web and AdultContent",
        "in part",
        "Web is the word-sense set of Snow et al. (34 workers, 177 tasks, 1,770 answers): its three sparsities are "
        "right, and the 770 answers of the table are a misprint. Of AdultContent the maximum and the minimum are those "
        "of AdultContent2 with 11,040 tasks; the average does not follow from 89,796 answers.",
        "Web 0.903955, 0, 0.705882; AdultContent 0.990141, printed 0.993666",
    ),
    Verdict(
        "Sun section VI-D: 2-Layer at privacy budget epsilon",
        "no",
        "The budget of a worker is uniform with mean epsilon and serves all the worker's cells. A cell loses up to the "
        "largest budget, 2 epsilon for U(0, 2 epsilon), as the number of tasks grows.",
        "1.986 at claimed 1 (177 tasks, 5 labels); 5.993 at claimed 3 (11,040 tasks)",
    ),
    Verdict(
        "Li Theorem 6.2: epsilon of one-layer",
        "yes",
        "Per answer, with the absolute value of the logarithm where labels are flipped more often than not.",
        "1.0000 at flip 0.2689, 2 labels",
    ),
    Verdict(
        "Li Theorem 6.3: epsilon of two-layer",
        "in part",
        "True for one answer per worker. One flip probability serves all answers of a worker, so k answers reveal "
        "it: with U(0, 1) and two labels the claim is 0 and the exact epsilon per cell is ln k.",
        "4.605 at k = 100, claimed 0",
    ),
    Verdict(
        "Li Theorem 6.4: two-layer is as private as one-layer at the mean flip probability",
        "in part",
        "For one answer only, as Theorem 6.3.",
        "1.000 against 4.605 at k = 100",
    ),
    Verdict(
        "Li section 6.1: a uniform flip probability gives stronger privacy than any other distribution",
        "no",
        "For one answer only the mean counts, and all distributions with one mean are equal. For k answers the weight "
        "near 0 decides: with two labels Beta(c, c) has the same mean as U(0, 1) and loses ln((k - 1 + c) / c).",
        "k = 100: Beta(2, 2) 3.922 < U(0, 1) 4.605; mean 0.269: U(0.25, 0.288) 1.060 < U(0, 0.538) 4.605",
    ),
    Verdict(
        "Li section 6.2: two-layer changes the error rate less, as a product of flip probabilities",
        "in part",
        "A smaller product is more likely, as the paper says, and its expectation is the same under both mechanisms, "
        "(b / 2)^n for n important users. The product is not the change: with known weights two-layer changes the "
        "exact error less at equal claim.",
        "smaller with probability 0.597; mean 0.25 = 0.25 (n = 2, b = 1)",
    ),
    Verdict(
        "Li section 6.3: two-layer is more useful at equal privacy",
        "not shown",
        "It compares claimed epsilons. If the smallest flip probability is at least that of one-layer, two-layer is"
        " one-layer followed by more flipping, so no inference from it can do better. Truth discovery at an equal exact"
        " epsilon, on Duchenne and simulated peer grading: one-layer is better per answer at every claim from 0 to 1; "
        "per worker two-layer is better from a claim of 0.6 up if one-layer shares it among all answers.",
        "flip 0.1, then flip 0.25 = flip 0.3",
    ),
    Verdict(
        "Li equation 7: error bound of weighted voting",
        "no",
        "The expectation of a power was replaced by the power of the expectation. With weights ln(p / (1 - p)) a "
        "sound bound is the product of 2 sqrt(p (1 - p)). The utility analysis of section 6.2 rests on equation 7.",
        "bound 6.78e-06 < error 0.0735 (51 workers, p = 0.4)",
    ),
    Verdict(
        "Li Tables 2 and 3: two-layer changes the error of truth discovery less at epsilon 0",
        "no",
        "With U(0, 1) and two labels reports have the same distribution under answers and under their complement, with "
        "one-layer under all answers: without gold or a skewed prior the expected error is 1/2 under both. How large "
        "the change is depends on the error without protection, which the paper prints for no named method.",
        "expected difference 0; printed 0.0220 and 0.0484",
    ),
    Verdict(
        "Li section 7.2: majority voting performs alike under one-layer and two-layer",
        "yes",
        "Exactly, in expectation and at equal claim: the vote decides each task by reports of different workers, which "
        "are independent and flipped with the mean probability under both.",
        "error 0.2974 = 0.2974 (3 workers of ability 0.8, flips 0.269 or U(0, 0.538))",
    ),
    Verdict(
        "Wang Theorem 1: epsilon-LADP per answer",
        "yes",
        "Binary randomized response on every cell; m answers of one worker compose to m epsilon. Participation is "
        "public in it.",
        "ratio 2.71828 at epsilon 1",
    ),
    Verdict(
        "Wang Theorem 2: error of private Dawid-Skene with probability 1 - C' / m",
        "no",
        "Perfect workers, epsilon 1, the truths as start: all conditions hold, the bound allows no wrong truth, and "
        "one occurs with a probability that falls more slowly than 1 / m. True with C' = 4 if also 16 ln(1/lambda) "
        "sqrt(ln m / n) <= v, which the step from equation 30 to 31 needs.",
        "C' > 2.0e+05 at m = 1e+08, > 5.4e+08 at m = 1e+12; true for m >= 5.66e+06, n >= 3.80e+05 at best (epsilon 1)",
    ),
    Verdict(
        "Wang Lemmas 1 to 3: the weights are near those of known abilities",
        "yes",
        "Lemma 1 holds with C' = 4, Lemma 3 without its conditions on lambda and m. The step from (23) to (24) is "
        "false; the mean value theorem gives (24) directly.",
        "the step is exceeded 500 times at lambda 0.001",
    ),
    Verdict(
        "Wang remark: at epsilon 0 the bound of Theorem 2 becomes 1/2",
        "no",
        "It is trivial, as the paper says, but with wisdom 0 it is 2.",
        "2",
    ),
    Verdict(
        "Wang Theorem 3: error of abilities",
        "in part",
        "The constant 6 / epsilon is sound for epsilon <= 1 (the proof has a sign slip), the theorem inherits the "
        "conditions of Theorem 2 and the one that it lacks.",
        "4.328 <= 6 at epsilon 1",
    ),
    Verdict(
        "Wang Theorem 4: better than majority vote",
        "not shown",
        "n^delta experts with delta < 1/2 have wisdom about n^(delta - 1), for which the condition missing in "
        "Theorem 2 fails for all large n. No probability is stated; with that of Theorem 2 the bound on Algorithm 1 is "
        "false.",
        "C' > 1.1e+16 (289 experts of 1e+06 workers, m = 1e+36, epsilon 2); needs 1.6e+12 of 1e+06 workers "
        "(delta 0.4, epsilon 2)",
    ),
    Verdict(
        "Huai equation 5: combined weights minimise equation 4",
        "no",
        "The derivative vanishes where weights are proportional to the square root of local times global. The product "
        "is the minimiser only where all products are equal.",
        "relative entropy 0.3681 > 0.2231 (local 0.9 and 0.1, global 0.5 and 0.5)",
    ),
    Verdict(
        "Huai Theorem 1: distance of synthetic and original density",
        "no",
        "No density on [-1, 1] has variance 1, as the theorem asks. With either one alone, read as in the "
        "reproduction, 4Ah + A^2 h^2 V + B/(mh) + ABV/m (our copy lost symbols of the formula): the left side has the "
        "unit 1/length, the first term has none, so it fails in small units. In any reading, records that passed the "
        "test are not samples of the density.",
        "42.36 > 3.002 (one claim, h = 0.001, m = 1e+06)",
    ),
    Verdict(
        "Huai Theorem 2: release after a privacy test is (epsilon, delta)-DP",
        "no",
        "Where no two claims share a bin, the loop waits until a raw kernel sample passes: delta is at least a claim's "
        "weight at any epsilon. Provable for one record with public weights and bandwidth if failures stay unseen; "
        "seen failures cost a claim's weight too, m records m times.",
        "delta 0.0400 > 5.6e-09 (25 claims, k = 20, epsilon0 = 1); failures seen: 0.0330 (30 claims, k = 5)",
    ),
    Verdict(
        "Huai Table 2: ISE and SISE on three data sets",
        "no",
        "The table contradicts the definitions beside it. Sums over objects force SISE <= ISE^2, means over objects "
        "force SISE >= ISE^2, and no reading of the two holds for all cells.",
        "SISE > ISE^2 in 12 of 15 cells, SISE < ISE^2 in the other 3",
    ),
)
"""One verdict per claim; `docs/explanation/verdicts.md` holds every row, and a test recomputes every figure."""
