"""Arrays handed on inside machine code without counting who uses them.

Numba counts references whenever a compiled function hands an array to another one, at a price of several comparisons
each. Whoever was called from Python with arrays can lend them out uncounted: the caller keeps them until it returns.
Importing this module needs numba."""

from __future__ import annotations

from typing import Any

from numba.extending import intrinsic


def _borrowed(_: Any, arrays: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        views = []
        for number, kind in enumerate(arrays.types):
            value = builder.extract_value(arguments[0], number)
            if not hasattr(kind, "ndim"):
                views.append(value)
                continue
            view = context.make_array(kind)(context, builder, value)
            view.meminfo = view.meminfo.type(None)
            view.parent = view.parent.type(None)
            views.append(view._getvalue())
        return context.make_tuple(builder, signature.return_type, views)

    return arrays(arrays), generate


borrowed: Any = intrinsic(_borrowed)
"""The same tuple without owners; values in it that are no arrays stay as they are."""
