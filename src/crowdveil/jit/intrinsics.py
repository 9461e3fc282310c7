"""Memory as compiled code needs it: asked for before it is read, and read as words that begin at any byte."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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


def _word_at(_: Any, text: Any, place: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the eight bytes from an unsigned place of a flat array of bytes on; nobody checks that they exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        word = builder.bitcast(builder.gep(held.data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(text, place), generate


ask_for: Any = intrinsic(_ask_for)
"""Called in compiled code as ask_for(array, index)."""
word_at: Any = intrinsic(_word_at)
"""Called in compiled code as word_at(text, place)."""
