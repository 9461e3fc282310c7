"""Messages of belief propagation, compiled: report by report, so that nothing stands in memory but a few weights each.

The message of a report to its task is made anew from its weights, sum_k weights[report, k] parts[y, k, mu], wherever it
is needed. Parts and truths are padded with zeros to whole tiles: the processor's registers are always full.
"""

from typing import Any

import numpy as np
from numba import njit

from crowdveil.em.kernels.numba_loops.layout import INDEX
from crowdveil.jit.kernel import kernel

TILE = 16
"""Truths that are worked on side by side."""
PARTS = 6
"""Parts that are added up at once."""
FAST = {"contract", "nsz", "nnan", "ninf", "reassoc"}
DIGITS = np.uint64(52)
FRACTION = np.uint64((1 << 52) - 1)
ONE = np.int64(1023)
UNIT = np.uint64(1023 << 52)


@kernel(fastmath=FAST)
def exchange(
    reports: Any,
    shares: Any,
    rates: Any,
    parts: Any,
    belief: Any,
    known: Any,
    weights: Any,
    limits: Any,
    product: Any,
    power: Any,
) -> None:
    """Tell workers what their tasks are believed to be, and tasks what their workers then say.

    Args:
        reports: where each task's begin, shape (tasks + 1,); worker and symbol of each.
        shares, rates: what is believed of workers, and their participation, indexed [worker, sigma].
        parts: indexed [symbol, part, truth], padded.
        belief: of each task, [task, truth], padded; empty before anything is known.
        known: whether a task's truth is, shape (tasks,).
        weights: of the parts of each report's message, [report, part], padded; replaced.
        limits: least probability of a report, by how much one may speak against a kind of worker, and how many
            probabilities are multiplied before the product is made a number between 1 and 2 again.
        product, power: to be filled: the product of each task's messages is product * 2^power, [task, truth].
    """
    pointers, worker, symbol = reports
    run = INDEX(limits[2])
    told, message = np.empty(parts.shape[1]), np.empty(parts.shape[2])
    told[:] = 1.0
    for task in range(len(pointers) - 1):
        product[task, :] = 1.0
        power[task, :] = 0
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            held, own = parts[INDEX(symbol[report])], INDEX(worker[report])
            if len(belief):
                _speak(weights[report], held, limits[0], message)
                _listen(belief[task], known[task], message, held, limits[0], told)
            _weigh(shares[own], rates[own], told, limits[1], weights[report])
            _speak(weights[report], held, limits[0], message)
            _multiply(message, product[task])
            if (report - INDEX(pointers[task])) % run == run - INDEX(1):
                _shorten(product[task], power[task])
        _shorten(product[task], power[task])


@kernel(fastmath=FAST)
def teach(
    reports: Any,
    parts: Any,
    belief: Any,
    known: Any,
    weights: Any,
    limits: Any,
    mixing: Any,
    product: Any,
    power: Any,
    heard: Any,
) -> None:
    """Multiply what reports say of their workers into product * 2^power, [worker, class], padded.

    `mixing` is indexed [part, class], padded; other arguments as in `exchange`.
    """
    pointers, worker, symbol = reports
    told, message, classes = np.empty(parts.shape[1]), np.empty(parts.shape[2]), np.empty(mixing.shape[1])
    for task in range(len(pointers) - 1):
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            held, own = parts[INDEX(symbol[report])], INDEX(worker[report])
            _speak(weights[report], held, limits[0], message)
            _listen(belief[task], known[task], message, held, limits[0], told)
            _speak(told, mixing, limits[0], classes)
            _multiply(classes, product[own])
            heard[own] += 1
            if heard[own] % limits[2] == 0:
                _shorten(product[own], power[own])


@njit(nogil=True, fastmath=FAST)
def _speak(weights: Any, parts: Any, least: Any, message: Any) -> None:
    """Fill message, shape (truths,), with the sum of weights[k] parts[k, truth], and no less than `least`."""
    truths = INDEX(len(message))
    for lane in range(truths):
        message[lane] = 0.0
    for step in range(INDEX(len(weights)) // INDEX(PARTS)):
        k = INDEX(step) * INDEX(PARTS)
        w0, w1, w2 = weights[k], weights[k + INDEX(1)], weights[k + INDEX(2)]
        w3, w4, w5 = weights[k + INDEX(3)], weights[k + INDEX(4)], weights[k + INDEX(5)]
        row0, row1, row2 = parts[k], parts[k + INDEX(1)], parts[k + INDEX(2)]
        row3, row4, row5 = parts[k + INDEX(3)], parts[k + INDEX(4)], parts[k + INDEX(5)]
        for lane in range(truths):
            first = w0 * row0[lane] + w1 * row1[lane] + w2 * row2[lane]
            message[lane] += first + w3 * row3[lane] + w4 * row4[lane] + w5 * row5[lane]
    for lane in range(truths):
        message[lane] = message[lane] if message[lane] > least else least


@njit(nogil=True, fastmath=FAST)
def _listen(belief: Any, known: Any, message: Any, parts: Any, least: Any, told: Any) -> None:
    """Fill told, shape (parts,): how likely the report is by each part, its task being believed what others say.

    `message` is replaced by that belief; a known truth needs no report.
    """
    truths = INDEX(len(message))
    if known:
        for lane in range(truths):
            message[lane] = belief[lane]
    else:
        for lane in range(truths):
            message[lane] = belief[lane] / message[lane]
    for step in range(INDEX(len(told)) // INDEX(PARTS)):
        k = INDEX(step) * INDEX(PARTS)
        row0, row1, row2 = parts[k], parts[k + INDEX(1)], parts[k + INDEX(2)]
        row3, row4, row5 = parts[k + INDEX(3)], parts[k + INDEX(4)], parts[k + INDEX(5)]
        t0, t1, t2, t3, t4, t5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for lane in range(truths):
            others = message[lane]
            t0 += others * row0[lane]
            t1 += others * row1[lane]
            t2 += others * row2[lane]
            t3 += others * row3[lane]
            t4 += others * row4[lane]
            t5 += others * row5[lane]
        told[k], told[k + INDEX(1)], told[k + INDEX(2)] = t0, t1, t2
        told[k + INDEX(3)], told[k + INDEX(4)], told[k + INDEX(5)] = t3, t4, t5
    for part in range(INDEX(len(told))):
        told[part] = max(told[part], least)


@njit(nogil=True, fastmath=FAST)
def _weigh(shares: Any, rates: Any, told: Any, least: Any, weights: Any) -> None:
    """Fill weights, shape (parts,): of a worker when what the report told is not counted."""
    total, answered, unanswered = 0.0, 0.0, told[0]
    for k in range(INDEX(len(shares))):
        likelihood = (1 - rates[k]) * unanswered + rates[k] * told[k + INDEX(1)]
        others = shares[k] / max(likelihood, least)
        total += others
        answered += others * rates[k]
        weights[k + INDEX(1)] = others * rates[k]
    scale = 1 / total
    for k in range(INDEX(len(shares))):
        weights[k + INDEX(1)] *= scale
    weights[0] = 1 - answered * scale


@njit(nogil=True, fastmath=FAST)
def _multiply(message: Any, product: Any) -> None:
    """Multiply messages into a product of as many numbers."""
    for lane in range(INDEX(len(message))):
        product[lane] *= message[lane]


@njit(nogil=True, fastmath=FAST)
def _shorten(product: Any, power: Any) -> None:
    """Move powers of two from products to their exponents, so that no product ever vanishes."""
    bits = product.view(np.uint64)
    for lane in range(INDEX(len(product))):
        power[lane] += np.int64(bits[lane] >> DIGITS) - ONE
        bits[lane] = (bits[lane] & FRACTION) | UNIT
