"""Compiles functions with numba, and keeps their machine code on disk for the next process.

`compiled` and the planner's `plan.machinecode` call it. Importing this module needs numba. Numba keeps machine code by
the function that is entered and by what it encloses, and knows nothing of changes in the functions that it calls:
therefore the entered function encloses the fingerprint of all of them."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, Final

from numba.extending import register_jitable

OPTIONS: Final[Mapping[str, Any]] = {"nogil": True, "error_model": "numpy"}


def fingerprint(modules: Iterable[ModuleType], *more: object) -> int:
    """Of all functions and constants of these modules, and of what else the machine code is made from."""
    found = [repr(each) for each in more]
    for module in modules:
        for name, value in sorted(vars(module).items()):
            code = getattr(value, "__code__", None)
            if code is not None:
                found.append(f"{name} {marshal.dumps(code, 2)!r}")
            elif isinstance(value, int):
                found.append(f"{name} {value}")
    return zlib.crc32("\n".join(found).encode()) or 1


def register(modules: Iterable[ModuleType]) -> None:
    """Let compiled functions call the functions that these modules define."""
    for module in modules:
        for function in _defined(module):
            register_jitable(function)


def _defined(module: ModuleType) -> Iterator[FunctionType]:
    functions = [each for each in vars(module).values() if isinstance(each, FunctionType)]
    return (each for each in functions if each.__module__ == module.__name__)
