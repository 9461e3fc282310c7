"""Just-in-time compilation by numba: the decision whether to compile, the decorator, and memory intrinsics.

numba and llvmlite are imported by the functions that need them, so that this module is light.
numba caches machine code beside the source, else in the user's cache folder (`NUMBA_CACHE_DIR` names another one).
If neither can be written, as in a read-only container, every process compiles anew.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from crowdveil.errors import SettingsError

KERNELS_VARIABLE = "CROWDVEIL_KERNELS"
"""Environment variable: `plain` or `compiled` for any size; `auto`, the default, by size and address space."""
STATM = Path("/proc/self/statm")
"""File whose first number counts the pages of the process's address space."""
MIN_BYTES_TO_START = 400_000_000
"""Address space that the numerical libraries map when they are loaded; with less, some of them hang or abort."""
MIN_BYTES_TO_COMPILE = 1 << 30
"""Address space that the compiler and its code need; with less, the compiler ends the process."""
PREFETCH_READ, PREFETCH_LEVEL_2, PREFETCH_DATA = 0, 2, 1
"""Operands of `llvm.prefetch`: access, cache level (the first level is too small for lines that wait), cache kind."""
_CHOICE: ContextVar[str | None] = ContextVar("kernels", default=None)
"""Choice of the process that began the fit; None for that of the environment."""


def kernels_choice() -> str:
    """Return `auto`, `plain` or `compiled`: the choice of the process that began the fit, or of the environment.

    Raises:
        SettingsError: the environment variable has an unknown value.
    """
    choice = _CHOICE.get() or os.environ.get(KERNELS_VARIABLE, "auto")
    if choice not in ("auto", "plain", "compiled"):
        raise SettingsError(f"{KERNELS_VARIABLE} must be auto, plain or compiled", value=choice)
    return choice


@contextmanager
def kernels_of_fit(choice: str) -> Iterator[None]:
    """Run with the choice of the process that began the fit, whatever the environment of this one is."""
    token = _CHOICE.set(choice)
    try:
        yield
    finally:
        _CHOICE.reset(token)


def should_compile(size: int, threshold: int) -> bool:
    """Return whether work of this size runs on compiled code: from `threshold` on, unless the environment decides.

    Raises:
        SettingsError: the environment variable has an unknown value.
    """
    choice = kernels_choice()
    return choice == "compiled" or (choice == "auto" and size >= threshold and _has_address_space_to_compile())


def _has_address_space_to_compile() -> bool:
    free = free_address_space()
    return free is None or free >= MIN_BYTES_TO_COMPILE


def free_address_space() -> int | None:
    """Return the bytes that may still be mapped under `ulimit -v`; None if there is no limit or it is unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or not STATM.is_file():
        return None
    return max(limit - int(STATM.read_text().split()[0]) * resource.getpagesize(), 0)


def compile_with_numba(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function without the interpreter lock; `options` are those of `numba.njit`."""
    from numba import njit

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            # No cache folder can be written.
            return njit(nogil=True, **options)(function)

    return compiled


@cache
def prefetch_intrinsic() -> Any:
    """Return the intrinsic `prefetch(array, index)` for use in compiled code.

    It requests the cache line of array[index]: a flat array, any unsigned index, also one beyond the end.
    """
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def prefetch(_: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            instruction_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], instruction_type)
            address = _element_address(context, builder, signature, arguments, byte)
            operands = number(PREFETCH_READ), number(PREFETCH_LEVEL_2), number(PREFETCH_DATA)
            builder.call(instruction, [address, *operands])
            return context.get_dummy_value()

        return types.void(array, index), generate

    return intrinsic(prefetch)


@cache
def row_addition_intrinsics() -> tuple[Any, Any]:
    """Return the intrinsics `add_row(target, at, source, start, width, lanes)` and `add_product(target, at, one, i,
    other, j, width, lanes)` for use in compiled code.

    They add source[start : start + width], or one[i : i + width] other[j : j + width], to target[at : at + width]; flat
    arrays of doubles, unchecked. A tuple `lanes` that is not empty has the width as its length, and the row is one
    SIMD vector: LLVM's vectorizer of loops leaves short ones as they are, and numba runs no other.
    """
    from llvmlite import ir
    from numba import types
    from numba.core.cgutils import for_range
    from numba.extending import intrinsic

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = signature.args[-1].count
        kind = ir.VectorType(ir.DoubleType(), lanes).as_pointer() if lanes else ir.DoubleType().as_pointer()
        places = range(0, len(arguments) - 2, 2)
        rows = [_element_address(context, builder, signature, arguments, kind, place) for place in places]

        def add(target: Any, *sources: Any) -> None:
            term, *factors = (builder.load(source, align=8) for source in sources)
            for factor in factors:
                term = builder.fmul(term, factor, flags=("contract",))
            total = builder.fadd(builder.load(target, align=8), term, flags=("contract",))
            builder.store(total, target, align=8)

        if lanes:
            add(*rows)
        else:
            with for_range(builder, arguments[-2]) as loop:
                add(*(builder.gep(row, [loop.index]) for row in rows))
        return context.get_dummy_value()

    def add_row(_: Any, target: Any, at: Any, source: Any, start: Any, width: Any, lanes: Any) -> Any:
        return types.void(target, at, source, start, width, lanes), generate

    def add_product(_: Any, target: Any, at: Any, one: Any, i: Any, other: Any, j: Any, width: Any, lanes: Any) -> Any:
        return types.void(target, at, one, i, other, j, width, lanes), generate

    return intrinsic(add_row), intrinsic(add_product)


def _element_address(context: Any, builder: Any, signature: Any, arguments: Any, pointer: Any, place: int = 0) -> Any:
    """Return the address of element arguments[place + 1] of the flat array arguments[place] as a type of pointer."""
    array = context.make_array(signature.args[place])(context, builder, arguments[place])
    return builder.bitcast(builder.gep(array.data, [arguments[place + 1]]), pointer)
