"""Ask for a line of memory that will be read soon, so that it is under way while other lines are worked on.

Rows of workers are read at random, and what misses a core's own caches takes a hundred times as long as what does not.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

AHEAD = 128
"""Reports from the one whose row is asked for to the one that is added up."""
READ, SECOND_CACHE, DATA = 0, 2, 1
"""What the instruction is told: to read, data, into the second cache; the first is too small to wait in."""


def _ask_for(_: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """Ask for the line that holds array[index]; flat array, unsigned index, which may be anything."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(builder.gep(held.data, [arguments[1]]), byte)
        builder.call(instruction, [place, number(READ), number(SECOND_CACHE), number(DATA)])
        return context.get_dummy_value()

    return types.void(array, index), generate


ask_for: Any = intrinsic(_ask_for)
"""Called in compiled code as ask_for(array, index)."""
