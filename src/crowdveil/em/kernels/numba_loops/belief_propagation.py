"""Compiled loops of loopy belief propagation between tasks and workers whose errors have one of several sigmas.

The message of report y to its task is sum_k weights[report, k] components[y, k, truth]. Only the weights are stored;
messages are computed again where they are needed. Component 0 is the NULL or non-participation term, the others belong
to one sigma each. Components and truths are padded with zeros to whole SIMD tiles.
"""

from typing import Any

import numpy as np
from numba import njit

from crowdveil.em.kernels.jit import compile_with_numba
from crowdveil.em.kernels.numba_loops.layout import INDEX

TILE_TRUTHS = 16
"""Truths are padded to a multiple of this."""
UNROLLED_COMPONENTS = 6
"""Components added up in one iteration; they are padded to a multiple of this."""
FAST = {"contract", "nsz", "nnan", "ninf", "reassoc"}
MANTISSA_BITS = np.uint64(52)
MANTISSA_MASK = np.uint64((1 << 52) - 1)
EXPONENT_BIAS = np.int64(1023)
EXPONENT_OF_ONE = np.uint64(1023 << 52)


@compile_with_numba(fastmath=FAST)
def update_messages(
    reports: Any,
    sigma_weights: Any,
    participation: Any,
    components: Any,
    belief: Any,
    known: Any,
    weights: Any,
    limits: Any,
    product: Any,
    power: Any,
) -> None:
    """Pass messages from tasks to workers and back.

    Args:
        reports: pointers to each task's reports, shape (tasks + 1,); worker and symbol of each report.
        sigma_weights, participation: posterior of each worker's sigma, and P(participation | sigma); [worker, sigma].
        components: P(symbol | component, truth), indexed [symbol, component, truth], padded.
        belief: posterior of each task, [task, truth], padded; empty in the first pass.
        known: whether a task's truth is gold, shape (tasks,).
        weights: of the components in each report's message, [report, component], padded; replaced.
        limits: floor of a report's probability, floor of a cavity likelihood relative to a sigma, and number of
            probabilities multiplied before the product is rescaled.
        product, power: filled with each task's product of messages, product * 2^power, [task, truth].
    """
    pointers, worker, symbol = reports
    run = INDEX(limits[2])
    likelihoods, message = np.empty(components.shape[1]), np.empty(components.shape[2])
    likelihoods[:] = 1.0
    for task in range(len(pointers) - 1):
        product[task, :] = 1.0
        power[task, :] = 0
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            row, sender = components[INDEX(symbol[report])], INDEX(worker[report])
            if len(belief):
                _fill_message_with_floored_mixture(weights[report], row, limits[0], message)
                _cavity_likelihoods(belief[task], known[task], message, row, limits[0], likelihoods)
            _fill_worker_cavity_weights(
                sigma_weights[sender], participation[sender], likelihoods, limits[1], weights[report]
            )
            _fill_message_with_floored_mixture(weights[report], row, limits[0], message)
            _multiply(message, product[task])
            if (report - INDEX(pointers[task])) % run == run - INDEX(1):
                _rescale(product[task], power[task])
        _rescale(product[task], power[task])


@compile_with_numba(fastmath=FAST)
def multiply_cavity_likelihoods(
    reports: Any,
    components: Any,
    belief: Any,
    known: Any,
    weights: Any,
    limits: Any,
    mixing: Any,
    product: Any,
    power: Any,
    counts: Any,
) -> None:
    """Multiply the cavity likelihoods of reports into each worker's product * 2^power, [worker, class], padded.

    `mixing` is indexed [component, class], padded; `counts` holds the factors so far, shape (workers,); other arguments
    as in `update_messages`.
    """
    pointers, worker, symbol = reports
    likelihoods, message, classes = (
        np.empty(components.shape[1]),
        np.empty(components.shape[2]),
        np.empty(mixing.shape[1]),
    )
    for task in range(len(pointers) - 1):
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            row, sender = components[INDEX(symbol[report])], INDEX(worker[report])
            _fill_message_with_floored_mixture(weights[report], row, limits[0], message)
            _cavity_likelihoods(belief[task], known[task], message, row, limits[0], likelihoods)
            _fill_message_with_floored_mixture(likelihoods, mixing, limits[0], classes)
            _multiply(classes, product[sender])
            counts[sender] += 1
            if counts[sender] % limits[2] == 0:
                _rescale(product[sender], power[sender])


@njit(nogil=True, fastmath=FAST)
def _fill_message_with_floored_mixture(weights: Any, components: Any, least: Any, message: Any) -> None:
    """Fill message, shape (truths,), with max(sum_k weights[k] components[k, truth], least)."""
    truths = INDEX(len(message))
    for lane in range(truths):
        message[lane] = 0.0
    for step in range(INDEX(len(weights)) // INDEX(UNROLLED_COMPONENTS)):
        k = INDEX(step) * INDEX(UNROLLED_COMPONENTS)
        w0, w1, w2 = weights[k], weights[k + INDEX(1)], weights[k + INDEX(2)]
        w3, w4, w5 = weights[k + INDEX(3)], weights[k + INDEX(4)], weights[k + INDEX(5)]
        row0, row1, row2 = components[k], components[k + INDEX(1)], components[k + INDEX(2)]
        row3, row4, row5 = components[k + INDEX(3)], components[k + INDEX(4)], components[k + INDEX(5)]
        for lane in range(truths):
            first = w0 * row0[lane] + w1 * row1[lane] + w2 * row2[lane]
            message[lane] += first + w3 * row3[lane] + w4 * row4[lane] + w5 * row5[lane]
    for lane in range(truths):
        message[lane] = message[lane] if message[lane] > least else least


@njit(nogil=True, fastmath=FAST)
def _cavity_likelihoods(belief: Any, known: Any, message: Any, components: Any, least: Any, likelihoods: Any) -> None:
    """Fill likelihoods, shape (components,), of the report under its task's cavity distribution.

    `message` is replaced by that distribution: belief / message, or the belief of a gold task.
    """
    truths = INDEX(len(message))
    if known:
        for lane in range(truths):
            message[lane] = belief[lane]
    else:
        for lane in range(truths):
            message[lane] = belief[lane] / message[lane]
    for step in range(INDEX(len(likelihoods)) // INDEX(UNROLLED_COMPONENTS)):
        k = INDEX(step) * INDEX(UNROLLED_COMPONENTS)
        row0, row1, row2 = components[k], components[k + INDEX(1)], components[k + INDEX(2)]
        row3, row4, row5 = components[k + INDEX(3)], components[k + INDEX(4)], components[k + INDEX(5)]
        t0, t1, t2, t3, t4, t5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for lane in range(truths):
            cavity = message[lane]
            t0 += cavity * row0[lane]
            t1 += cavity * row1[lane]
            t2 += cavity * row2[lane]
            t3 += cavity * row3[lane]
            t4 += cavity * row4[lane]
            t5 += cavity * row5[lane]
        likelihoods[k], likelihoods[k + INDEX(1)], likelihoods[k + INDEX(2)] = t0, t1, t2
        likelihoods[k + INDEX(3)], likelihoods[k + INDEX(4)], likelihoods[k + INDEX(5)] = t3, t4, t5
    for component in range(INDEX(len(likelihoods))):
        likelihoods[component] = max(likelihoods[component], least)


@njit(nogil=True, fastmath=FAST)
def _fill_worker_cavity_weights(
    sigma_weights: Any, participation: Any, likelihoods: Any, least: Any, weights: Any
) -> None:
    """Fill weights, shape (components,), from the worker's posterior without this report (the cavity)."""
    total, answered, unanswered = 0.0, 0.0, likelihoods[0]
    for k in range(INDEX(len(sigma_weights))):
        likelihood = (1 - participation[k]) * unanswered + participation[k] * likelihoods[k + INDEX(1)]
        cavity = sigma_weights[k] / max(likelihood, least)
        total += cavity
        answered += cavity * participation[k]
        weights[k + INDEX(1)] = cavity * participation[k]
    scale = 1 / total
    for k in range(INDEX(len(sigma_weights))):
        weights[k + INDEX(1)] *= scale
    weights[0] = 1 - answered * scale


@njit(nogil=True, fastmath=FAST)
def _multiply(message: Any, product: Any) -> None:
    """Multiply a message into a product, elementwise."""
    for lane in range(INDEX(len(message))):
        product[lane] *= message[lane]


@njit(nogil=True, fastmath=FAST)
def _rescale(product: Any, power: Any) -> None:
    """Move powers of two from products to `power`, so that no product underflows."""
    bits = product.view(np.uint64)
    for lane in range(INDEX(len(product))):
        power[lane] += np.int64(bits[lane] >> MANTISSA_BITS) - EXPONENT_BIAS
        bits[lane] = (bits[lane] & MANTISSA_MASK) | EXPONENT_OF_ONE
