"""Small instances of every registered mechanism; one that is not listed here is tried with both participations."""

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import (
    MECHANISMS,
    Designed,
    Laplace,
    MatrixFactorization,
    Mechanism,
    OneLayer,
    QuantizedResponse,
    RandomizedResponse,
    TwoLayer,
)
from crowdveil.published import MatrixFactorizationPublished, SunTwoLayer

YES_NO, DIGITS = Categories(("no", "yes")), Scale(0, 9)
RATINGS = Categories(("G", "P", "R", "X"), ordered=True)
BLOCKS = QuantizedResponse(alphabet=Scale(0, 4), epsilon=1.0, cuts=(1,))
PUBLIC = RandomizedResponse(alphabet=YES_NO, epsilon=0.5, participation="public")
FACTORS = MatrixFactorizationPublished(alphabet=DIGITS, epsilon=1.0, tasks=6, dimensions=2, ridge=0.1)

EXAMPLES: list[Mechanism] = [
    RandomizedResponse(alphabet=RATINGS, epsilon=1.0),
    PUBLIC,
    RandomizedResponse(alphabet=DIGITS, epsilon=3.0),
    OneLayer(alphabet=YES_NO, epsilon=1.0, participation="public"),
    OneLayer.from_flip_probability(alphabet=YES_NO, flip_probability=0.4),
    QuantizedResponse(alphabet=DIGITS, epsilon=1.0, cuts=(1, 4)),
    QuantizedResponse(alphabet=Categories(("G", "P", "R", "X")), epsilon=2.0, blocks=((0, 3), (1,), (2,))),
    QuantizedResponse(alphabet=DIGITS, epsilon=0.5, participation="public", cuts=(1,)),
    Designed.from_channel(BLOCKS.channel()),
    Designed.from_channel(PUBLIC.channel()),
    Laplace(alphabet=DIGITS, epsilon=1.0),
    Laplace(alphabet=Scale(-1, 1, 0.25), epsilon=3.0, null_value=0.0),
    Laplace(alphabet=RATINGS, epsilon=0.5, participation="public"),
    TwoLayer.as_published(alphabet=YES_NO, epsilon=1.0, participation="public", answers=40),
    TwoLayer.as_published(alphabet=YES_NO, epsilon=1.0, participation="public"),
    TwoLayer.calibrated(alphabet=RATINGS, epsilon=1.0),
    TwoLayer.widest_for_cell_epsilon(alphabet=RATINGS, epsilon=2.0),
    SunTwoLayer(alphabet=RATINGS, epsilon=1.0),
    SunTwoLayer(alphabet=DIGITS, epsilon=3.0, answers=40),
    SunTwoLayer(alphabet=YES_NO, epsilon=2.0, low=1.5),
    MatrixFactorization(alphabet=Scale(0, 4), epsilon=1.0),
    MatrixFactorization(alphabet=DIGITS, epsilon=0.5, dimensions=2),
    FACTORS,
    MatrixFactorizationPublished(
        alphabet=Scale(0, 4), epsilon=3.0, tasks=5, dimensions=3, profiles="uniform", ridge=1e-6
    ),
]
EXAMPLES += [
    kind(alphabet=RATINGS, epsilon=1.0, participation=participation)
    for name, kind in MECHANISMS.items()
    if name not in {case.name for case in EXAMPLES}
    for participation in ("protected", "public")
]
