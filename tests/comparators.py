"""Tables with which designed channels are compared."""

import math

import numpy as np

from crowdveil.design import channel_design as design_file
from crowdveil.mechanisms import QuantizedResponse


def comparators(objective, epsilon):
    """Real tables P(report | input) by name: closed forms, subset selection (Ye and Barg 2018), unary encodings.

    The unary encodings (Wang et al. 2017) send one randomized bit per input, where the words of bits are few.
    """
    quantized, size = QuantizedResponse.for_objective(objective, epsilon), objective.input_count
    closed = design_file._closed_form_channels(objective, epsilon, quantized)
    tables = {channel.mechanism: channel.probabilities for channel in closed}
    subsets = [
        np.where(design_file._membership_of_all_sets_of_size(size, k), math.exp(epsilon), 1.0)
        for k in design_file._enumerable_sizes(size)
    ]
    tables["subset-selection"] = max(
        (one / one.sum(axis=1, keepdims=True) for one in subsets), key=objective.objective_of_channel
    )
    half = 1 / (1 + math.exp(epsilon / 2))
    words = {"symmetric": (1 - half, half), "optimized": (0.5, 1 / (1 + math.exp(epsilon)))} if size <= 12 else {}
    for name, (keep, flip) in words.items():
        bits = (np.arange(2**size) >> np.arange(size)[:, None] & 1).astype(bool)
        others = np.where(bits, flip, 1 - flip).prod(axis=0)
        tables[f"{name}-unary-encoding"] = others * np.where(bits, keep / flip, (1 - keep) / (1 - flip))
    return tables
