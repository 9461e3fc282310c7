"""Notes of the figures on accuracy, and the parameters that the paper does not print; swept in `parameters`."""

from experiments.papers.exhibit import OpenParameter

NOTES = (
    "MAE change is the error of Algorithm 1 on the reports less its error on the unprotected answers. Epsilon is in "
    "nats and of a single cell (one worker's answer to one task); participation is protected. The exact epsilon of LP "
    "is below the claim, that of 2-Layer above it, and MF has none: its reports reveal participation.",
    "`constant` is the error of the best public constant, `correlation` that of inferred and true numbers. crowdveil "
    "reads reports through their channel, at the exact epsilon of RR. `standard_error` is that of `error` over the "
    "repeats.",
)
OPEN_PARAMETERS = (
    OpenParameter(
        "rank d",
        "5",
        "2, 5, 20, 50",
        "a larger rank multiplies the error of MF at epsilon 0.1 and sparsity 0.9",
    ),
    OpenParameter(
        "ridge of MF",
        "0.1",
        "1e-06, 0.1, 1",
        "without a ridge there is no minimiser where a worker has fewer than d answers",
    ),
    OpenParameter(
        "distribution of V",
        "Gaussian, columns of L1 norm 1",
        "Gaussian, uniform",
        "with a uniform V MF sends about the worker's mean answer",
    ),
    OpenParameter(
        "learning rate of Algorithm 2",
        "none: its stationary point is solved for",
        "none",
        "the published loop ends at this point or not at all",
    ),
    OpenParameter("rounding of answers", "nearest integer of 0 to 9", "nearest, down", "it shifts every error"),
    OpenParameter("truth that is scored", "clipped to 0 to 9", "clipped, raw", "every error is larger on raw truths"),
    OpenParameter(
        "value of NULL in LP",
        "uniform on 0 to 9, as section VI-C says",
        "uniform, 0",
        "the public centre 0 removes most of the error of LP",
    ),
    OpenParameter(
        "smallest budget of 2-Layer",
        "0, so that budgets are uniform on 0 to 2 epsilon",
        "0, 0.5 epsilon",
        "little in error; the exact epsilon falls with the largest budget",
    ),
)
