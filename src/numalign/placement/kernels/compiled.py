"""The row kernels as machine code: row by row over arrays, with numba.

Importing this module needs numba; `kernels.warm` looks whether it is there. Compiling takes half a minute and is kept
on disk, so that only the first process pays; `warm` does it ahead of need, in whatever thread its caller likes."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

import numba
import numpy as np
from numba.extending import register_jitable

from numalign.placement.kernels import charging, direct, lists, merging, picking, plans, scoring, simple, walk, work
from numalign.placement.kernels.block import Outcomes, RowBlock, Rows
from numalign.placement.kernels.plans import ZONES, Plan
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import Scoring
from numalign.placement.kernels.work import Work
from numalign.placement.noderules import NodeRules
from numalign.placement.programs import Program


def _record(names: tuple[str, ...], lengths: dict[str, int]) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64, (lengths[name],)) if name in lengths else (name, np.int64) for name in names])


ROW_KERNELS: Final = (lists, merging, picking, charging, scoring, simple, direct, walk)
PLAN: Final = _record(Plan.__struct_fields__, dict(plans.LENGTHS))
WORK: Final = _record(Work.__slots__, dict(work.LENGTHS))


def evaluate(block: RowBlock, rows: Rows, program: Program, scoring: Scoring) -> Outcomes:
    """All these rows; twin of `arrays.evaluate` and `scalar.evaluate`."""
    made = plans.plan(block.rules, program, scoring)
    outcomes = Outcomes(np.empty(len(rows), np.int32), np.zeros((len(rows), made.steps), np.uint8))
    _compiled_rows(recorded(made), *map(np.ascontiguousarray, _with_room(block, made)[1:]), rows, *outcomes)
    return outcomes


def evaluate_row(block: RowBlock, row: int, made: Plan) -> tuple[int, tuple[int, ...]]:
    """One row; twin of `scalar.evaluate_row`. The block's arrays have to be contiguous."""
    if made.columns[-1] >= block.free.shape[2] or made.zones > block.free.shape[1]:
        block = _with_room(block, made)
    rows, codes, masks = np.empty(1, np.int32), np.empty(1, np.int32), np.zeros((1, made.steps), np.uint8)
    rows[0] = row
    _compiled_rows(recorded(made), *block[1:], rows, codes, masks)
    return int(codes[0]), tuple(masks.ravel().tolist())


def _with_room(block: RowBlock, made: Plan) -> RowBlock:
    """The block, with room for columns and zones that no row has shown: rare, as `columns` makes it beforehand."""
    _, zones, columns = block.free.shape
    missing = (0, max(0, made.zones - zones)), (0, max(0, made.columns[-1] + 1 - columns))
    if missing == ((0, 0), (0, 0)):
        return block
    return block._replace(
        free=np.pad(block.free, ((0, 0), *missing)),
        size=np.pad(block.size, ((0, 0), *missing)),
        allocatable=np.pad(block.allocatable, ((0, 0), *missing)),
        homeless=np.pad(block.homeless, ((0, 0), missing[1])),
        homeless_size=np.pad(block.homeless_size, ((0, 0), missing[1])),
        cells=np.pad(block.cells, ((0, 0), missing[0])),
    )


def warm() -> None:
    """Compile for the one signature there is, or load it from disk."""
    rules = NodeRules(zones=(0,))
    numbers, masks = np.zeros((1, 1, 2), np.int64), np.ones((1, 1), np.uint8)
    by_column, by_row = numbers[0], np.zeros(1, np.int64)
    block = RowBlock(
        rules, numbers, numbers, numbers, by_column, by_column, by_row, masks, masks[0], np.ones(1, np.bool_)
    )
    evaluate(block, np.zeros(1, np.int32), Program(()), Scoring())


def recorded(made: Plan) -> Any:
    """The plan as a record, made once."""
    found = made.__dict__.get("record")
    if found is None:
        found = np.zeros(1, PLAN)
        for name in Plan.__struct_fields__:
            value = getattr(made, name)
            if name in plans.LENGTHS:
                found[name][0, : len(value)] = value
            else:
                found[name] = value
        made.__dict__["record"] = found
    return found


def _entry(fingerprint: int) -> Any:
    """The function that is compiled. Numba keeps machine code by what is enclosed: another fingerprint, other code."""

    def evaluate_rows(
        plan: Any,
        free: Any,
        size: Any,
        allocatable: Any,
        homeless: Any,
        homeless_size: Any,
        full_core_cpus: Any,
        cells: Any,
        busy: Any,
        split_known: Any,
        rows: Any,
        codes: Any,
        masks: Any,
    ) -> int:
        made, scratch = plan[0], np.empty(1, WORK)[0]
        for number in range(len(rows)):
            # Unsigned, or every access would ask whether it counts from the end.
            row = np.uint32(rows[number])
            for zone in range(made.zones if made.plain else 0):
                scratch.cells[zone] = cells[row, zone]
                for place in range(made.places):
                    at, column = place * ZONES + zone, made.columns[place]
                    scratch.free[at] = max(0, free[row, zone, column])
                    scratch.allocatable[at] = allocatable[row, zone, column]
            code = direct.decide_directly(made, scratch)
            for general in range(1 - made.plain, 2 if code == GENERAL else 0):
                # Loaded here as in `scalar.load`: a call would count references of every array that it hands over.
                for place in range(made.places):
                    column, domain = made.columns[place], 0
                    for zone in range(made.zones):
                        at = place * ZONES + zone
                        scratch.free[at] = max(0, free[row, zone, column])
                        scratch.size[at] = size[row, zone, column]
                        scratch.allocatable[at] = allocatable[row, zone, column]
                        scratch.cells[zone] = cells[row, zone]
                        domain |= int(scratch.size[at] > 0) << zone
                    scratch.domains[place] = domain
                    scratch.homeless[place] = max(0, homeless[row, column])
                    scratch.homeless_size[place] = homeless_size[row, column]
                scratch.busy, scratch.full_core_cpus = busy[row], full_core_cpus[row]
                scratch.whole_cores = split_known[row]
                code = walk.decide(made, scratch) if general else simple.decide_simply(made, scratch)
                if code != GENERAL:
                    break
            codes[number] = code
            for step in range(made.steps if code >= 0 else 0):
                masks[number, step] = scratch.masks[step]
        return fingerprint

    return numba.njit(cache=True, nogil=True, error_model="numpy")(evaluate_rows)


def fingerprint(modules: Iterable[ModuleType] = ROW_KERNELS) -> int:
    """Of all functions and constants that machine code is made from: numba itself looks at the entered one only."""
    found = [repr(PLAN), repr(WORK)]
    for module in modules:
        for name, value in sorted(vars(module).items()):
            code = getattr(value, "__code__", None)
            if code is not None:
                found.append(f"{name} {marshal.dumps(code, 2)!r}")
            elif isinstance(value, int):
                found.append(f"{name} {value}")
    return zlib.crc32("\n".join(found).encode()) or 1


for _module in ROW_KERNELS:
    for _function in [each for each in vars(_module).values() if getattr(each, "__module__", "") == _module.__name__]:
        register_jitable(_function)
_compiled_rows: Any = _entry(fingerprint())
