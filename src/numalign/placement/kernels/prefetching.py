"""Memory asked for before it is needed.

On large clusters the row of the next pod is hardly ever in a cache, and what is known of it lies in a dozen arrays.
`repeating` asks for all of it as soon as it has picked the row, so that it waits once and not a dozen times. Importing
this module needs numba."""

from __future__ import annotations

from typing import Any, Final

from numba.core import cgutils, types
from numba.extending import intrinsic

tools: Any = cgutils
ir: Any = tools.ir
NUMBER: Final[Any] = ir.IntType(32)
PLACE: Final[Any] = ir.IntType(8).as_pointer()
TO_READ, KEEP, DATA = NUMBER(0), NUMBER(3), NUMBER(1)
"""What LLVM is told: for reading, to be kept in all caches, and no code."""


def _ahead(_: Any, array: Any, row: Any, place: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        there = context.make_array(array)(context, builder, arguments[0])
        given = [context.cast(builder, arguments[at], signature.args[at], types.intp) for at in (1, 2)]
        indices = (given + [context.get_constant(types.intp, 0)] * array.ndim)[: array.ndim]
        item = tools.get_item_pointer(context, builder, array, there, indices, wraparound=False)
        asking = ir.FunctionType(ir.VoidType(), [PLACE, NUMBER, NUMBER, NUMBER])
        ask = tools.get_or_insert_function(builder.module, asking, "llvm.prefetch.p0i8")
        builder.call(ask, [builder.bitcast(item, PLACE), TO_READ, KEEP, DATA])
        return context.get_dummy_value()

    return types.void(array, row, place), generate


ahead: Any = intrinsic(_ahead)
"""Ask for what an array has at this row and, if it has more dimensions, at this place in it."""
