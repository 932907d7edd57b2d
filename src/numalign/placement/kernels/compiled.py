"""The row kernels as machine code: row by row over arrays, with numba.

Importing this module needs numba; `kernels.load` checks that it is there. Numba keeps what it compiles on disk, so that
only the first process pays; `warm` compiles or loads it ahead of need, in whatever thread its caller likes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from numalign.placement.columns.columns import NONE_PENDING, NOT_EXACT
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.kernels import (
    admit,
    allocate,
    counting,
    cpupicking,
    hints,
    machinecode,
    merge,
    scoring,
    singlezone,
    work,
)
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.block import (
    ASK,
    NO_ROOM,
    OPEN,
    Codes,
    Counts,
    Masks,
    Outcomes,
    Pending,
    Question,
    RowBlock,
    Rows,
    RowTotals,
    with_room,
)
from numalign.placement.kernels.plan import MOST_STEPS, ZONES, Ground, Plan, Scoring
from numalign.placement.kernels.singlezone import CODE, LANES, UNDECIDED
from numalign.placement.kernels.work import Work
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.nodeamounts import (
    NEVER,
    OUT,
    AmountColumns,
    AmountRanks,
    AmountTerms,
    Found,
    Places,
    RankedRows,
)
from numalign.placement.rules.totals import Totals


def _record(names: Iterable[str], lengths: Mapping[str, int], short: Collection[str] = ()) -> np.dtype[np.void]:
    kinds = {name: np.int16 if name in short else np.int64 for name in names}
    return np.dtype(
        [(name, kind, (lengths[name],)) if name in lengths else (name, kind) for name, kind in kinds.items()]
    )


ROW_KERNELS: Final = (hints, merge, cpupicking, allocate, scoring, singlezone, admit, counting, nodeamounts)
OF_MASKS: Final = tuple(name for name, length in plans.LENGTHS.items() if length == plans.MASKS)
"""Tables of masks and small numbers, which come last in a record and in less space: there is a record per shape."""
WIDE: Final = tuple(name for name in Plan.__struct_fields__ if name not in OF_MASKS)
PLAN: Final = _record((*WIDE, *OF_MASKS), plans.LENGTHS, OF_MASKS)
_machine_code: Final = numba.njit(cache=True, **machinecode.OPTIONS)
WORK: Final = _record(Work.__slots__, work.LENGTHS)
OFFSETS: Final = dict(PLAN.fields or {})
Field = tuple[str, int, bool]
FIELDS: Final[list[Field]] = [(name, OFFSETS[name][1] // 8, name in plans.LENGTHS) for name in WIDE]
"""A plan's wide fields with their place in its record, and whether they are tables."""
NO_GROUND: Final = Ground({})
ANY_KIND: Final = -9
"""Instead of a kind: rows of all kinds, whatever their totals, with outcomes in the order of the rows."""
NO_TOTALS: Final = RowTotals(
    kind=np.zeros(0, np.int32),
    loose=np.zeros(0, np.bool_),
    pods=np.zeros(0, np.int32),
    most_pods=np.zeros(0, np.int32),
    spare=np.zeros((0, 0), np.int64),
)
NO_AMOUNTS: Final = Totals(1)
NO_REQUESTS: Final = np.zeros((0, 2), np.int64)
PLAINLY: Final = 1
"""The weight of a score, or of codes, that stand alone; 0: what is not 0 refuses a place."""
Numbers = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Rules, what they ask for, and lines of scores: see `_amounts_entry`."""
NO_ROWS: Final = (
    np.zeros(0, np.intp),
    np.zeros(0, np.int32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
)
_NO_SHAPE: Final = -9
"""Instead of the shape that is counted: the order of pods does not count."""
ZONES_ONLY: Final = *NO_TOTALS, NO_REQUESTS, ANY_KIND, OPEN, 0


def evaluate(block: RowBlock, rows: Rows, plan: Plan) -> Outcomes:
    """These rows."""
    outcomes = Outcomes(np.empty(len(rows), np.int8), np.zeros((len(rows), plan.steps), np.uint8))
    _compiled_rows(recorded(plan), *with_room(block, plan).zones, *ZONES_ONLY, rows, *outcomes)
    return outcomes


def survey(block: RowBlock, question: Question, rows: Rows, codes: Codes, masks: Masks) -> int:
    """These rows, in place."""
    call: _Call | None = question.call
    if call is None or call.block is not block:
        assert block.totals is not None, "a survey looks at totals"
        asked = question.asked, question.kind, question.outright, question.penalty
        roomy = with_room(block, question.plan)
        call = _Call(block, (recorded(question.plan), *roomy.zones, *block.totals, *asked))
        # A copy would not show what changes.
        question.call = call if roomy is block else None
    undecided: int = _compiled_rows(*call.arguments, rows, codes, masks)
    return undecided


def evaluate_row(block: RowBlock, row: int, plan: Plan) -> tuple[int, tuple[int, ...]]:
    """One row."""
    call: _RowCall | None = plan.__dict__.get("call")
    if call is None or call.block is not block:
        call = plan.__dict__["call"] = _row_call(block, plan)
    call.rows[0] = row
    _compiled_rows(*call.arguments)
    return call.codes.item(0), tuple(call.masks[0].tolist())


def count(block: RowBlock, question: Question, pending: Pending, rows: Rows) -> Counts:
    """These rows, one after the other."""
    counts = Counts(np.empty(len(rows), np.int8), np.zeros((len(rows), ZONES + 1), np.int64))
    assert block.totals is not None, "counting looks at totals"
    roomy = with_room(block, question.plan)
    settled = pending.settled if roomy is block else with_room(block._replace(free=pending.settled), question.plan).free
    own = _NO_SHAPE if pending.trusted else pending.own
    _compiled_counts(
        recorded(question.plan),
        *roomy.zones,
        *block.totals,
        settled,
        pending.shape,
        own,
        question.asked,
        int(question.outright),
        rows,
        *counts,
    )
    return counts


def amounts(terms: AmountTerms, columns: AmountColumns, places: Places) -> Found:
    """The outcome of every place, in their order."""
    numbers = terms.__dict__.get("numbers")
    if numbers is None:
        numbers = terms.__dict__["numbers"] = _numbers(((PLAINLY, terms),))
    return _by_place(numbers, columns, places)


def ranked(terms: AmountRanks, columns: AmountColumns, places: Places) -> Found:
    """The sum of the weighted scores of every place, `NEVER` where a filter refuses it."""
    return _by_place(_numbers_of(terms), columns, places)


def rank(terms: AmountRanks, columns: AmountColumns, places: Places, rows: RankedRows, ranks: Found) -> tuple[int, int]:
    """The rank of every row, into `ranks`."""
    by_place = columns.allocatable, columns.requested, columns.scored, columns.pods, columns.most_pods
    found = np.empty(len(places), np.int32)
    best: tuple[int, int] = _compiled_amounts(*_numbers_of(terms), *by_place, places, found, *rows, ranks)
    return best


def _by_place(numbers: Numbers, columns: AmountColumns, places: Places) -> Found:
    found = np.empty(len(places), np.int32)
    by_place = columns.allocatable, columns.requested, columns.scored, columns.pods, columns.most_pods
    # An array of another kind would be a reason to compile once more.
    places = places if places.dtype == np.intp and places.flags.carray else places.astype(np.intp)
    _compiled_amounts(*numbers, *by_place, places, found, *NO_ROWS)
    return found


def _numbers_of(terms: AmountRanks) -> Numbers:
    found: Numbers | None = terms.__dict__.get("numbers")
    if found is None:
        found = terms.__dict__["numbers"] = _numbers([*terms.scores, *((0, each) for each in terms.filters)])
    return found


def _numbers(weighted: Sequence[tuple[int, AmountTerms]]) -> Numbers:
    rules, asked, lines = list[tuple[int, ...]](), list[tuple[int, ...]](), list[int]()
    for weight, terms in weighted:
        first, line = len(asked), len(lines)
        asked += [(each.column, each.amount, each.weight, each.as_scored) for each in terms.asked]
        lines += terms.line
        rules.append((terms.what, weight, first, len(asked), line))
    arrays = np.array(rules, np.int64).reshape(-1, 5), np.array(asked, np.int64).reshape(-1, 4)
    return *arrays, np.array(lines, np.int64)


class _Call(NamedTuple):
    """The arguments of a survey but the rows and where outcomes go: making them takes longer than the call."""

    block: RowBlock
    arguments: tuple[Any, ...]


class _RowCall(NamedTuple):
    """The arguments of a call for one row, kept with the plan for the same reason."""

    block: RowBlock
    rows: Rows
    codes: NDArray[np.int8]
    masks: NDArray[np.uint8]
    arguments: tuple[Any, ...]


def _row_call(block: RowBlock, plan: Plan) -> _RowCall:
    rows, codes, masks = np.empty(1, np.int32), np.empty(1, np.int8), np.zeros((1, plan.steps), np.uint8)
    arguments = recorded(plan), *with_room(block, plan).zones, *ZONES_ONLY, rows, codes, masks
    return _RowCall(block, rows, codes, masks, arguments)


def warm() -> None:
    """Compile, or load what an earlier process compiled."""
    rules = NodeRules(zones=(0,), policy="single-numa-node")
    numbers, masks = np.zeros((1, 1, 2), np.int64), np.ones((1, 1), np.uint8)
    by_column, by_row = numbers[0], np.zeros(1, np.int64)
    rows = np.zeros(1, np.int32)
    block = RowBlock(
        rules, numbers, rows, numbers, numbers, by_column, by_column, by_row, masks, masks[0], np.ones(1, np.bool_)
    )
    evaluate(block, rows, plans.plan(rules, Program(()), Scoring()))
    totals = RowTotals(rows, np.ones(1, np.bool_), rows, rows, by_column)
    asked = Question(kind=0, plan=plans.counting(rules, Program(()), Scoring()), asked=NO_REQUESTS)
    count(block._replace(totals=totals), asked, Pending(numbers, rows, 0, trusted=False), rows)
    amounts(AmountTerms(nodeamounts.FIT, ()), NO_AMOUNTS, np.zeros(0, np.intp))


def origin() -> str:
    """Where the machine code of this process came from, after `warm`."""
    stats = _compiled_rows.stats
    return f"compiled, and kept in {stats.cache_path}" if stats.cache_misses else f"loaded from {stats.cache_path}"


def recorded(plan: Plan) -> Any:
    """The plan as a record, made once; what all plans for a kind of node have in common is copied."""
    found = plan.__dict__.get("record")
    if found is None:
        ground: Ground = plan.__dict__.get("ground", NO_GROUND)
        common, own = _prepared(ground)
        numbers = common.copy()
        for name, start, is_table in own:
            if is_table:
                value = getattr(plan, name)
                numbers[start : start + len(value)] = value
            else:
                numbers[start] = getattr(plan, name)
        # A view would be checked field by field.
        found = plan.__dict__["record"] = np.frombuffer(numbers, PLAN)
    return found


def _prepared(ground: Ground) -> tuple[NDArray[np.int64], list[Field]]:
    """The common part as numbers, and the fields that are missing there."""
    found: tuple[NDArray[np.int64], list[Field]] | None = ground.__dict__.get("prepared")
    if found is None:
        record = np.zeros(1, PLAN)
        for name, value in ground.fields.items():
            if name in plans.LENGTHS:
                record[name][0, : len(value)] = value
            else:
                record[name] = value
        own = [each for each in FIELDS if each[0] not in ground.fields]
        # What programs bring along is int64: filled as such it takes a fraction of the time.
        found = ground.__dict__["prepared"] = record.view(np.int64), own
    return found


def _rows_entry(fingerprint: int) -> Any:  # noqa: C901 (a call would count references of every array)
    """The function that is compiled. Numba keeps machine code by what is enclosed: another fingerprint, other code."""

    def evaluate_rows(  # noqa: C901
        plan: Any,
        free: Any,
        stock: Any,
        size: Any,
        allocatable: Any,
        homeless: Any,
        homeless_size: Any,
        full_core_cpus: Any,
        cells: Any,
        busy: Any,
        split_known: Any,
        kinds: Any,
        loose: Any,
        pods: Any,
        most_pods: Any,
        spare: Any,
        asked: Any,
        kind: int,
        outright: int,
        penalty: int,
        rows: Any,
        codes: Any,
        masks: Any,
    ) -> int:
        made, undecided, number = plan[0], 0, 0
        space, field = np.empty(1, WORK), np.empty((singlezone.lanes(made), LANES))
        batch, stocks = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
        while number < len(rows):
            # Some rows that have room, side by side.
            first, count = number, 0
            while count < LANES and number < len(rows):
                # Unsigned, or every access would ask whether it counts from the end.
                row = np.uint32(rows[number])
                number += 1
                if kind != ANY_KIND:
                    if kinds[row] != kind:
                        continue
                    has_room = pods[row] < most_pods[row]
                    for each in range(len(asked)):
                        column = np.uint32(asked[each, 0])
                        has_room &= asked[each, 1] <= spare[row, column]
                    if not has_room or outright != OPEN or loose[row]:
                        codes[row] = NO_ROOM if not has_room else outright if outright != OPEN else ASK
                        undecided += has_room and outright == OPEN
                        continue
                batch[count], stocks[count] = row, stock[row]
                count += 1
            if made.in_one_zone:
                singlezone.decide(made, field, batch, stocks, count, free, allocatable, cells)
            for lane in range(count):
                row, own, code = batch[lane], stocks[lane], int(field[CODE, lane]) if made.in_one_zone else UNDECIDED
                place = np.uint32(first + lane) if kind == ANY_KIND else row
                if code != UNDECIDED:
                    for step in range(made.steps):
                        masks[place, step] = int(field[singlezone.masks_at(made) + step, lane])
                    codes[place] = max(1, code - penalty) if code > 0 else code
                    continue
                # Nothing but the array keeps the memory of its record, and it goes after its last use: so that is here.
                scratch = space[0]
                # Loaded here as in `scalar.load`: a call would count references of every array that it hands over.
                for item in range(made.places):
                    column, domain = made.columns[item], 0
                    for zone in range(made.zones):
                        at = item * ZONES + zone
                        scratch.free[at] = max(0, free[row, zone, column])
                        scratch.size[at] = size[own, zone, column]
                        scratch.allocatable[at] = allocatable[own, zone, column]
                        scratch.cells[zone] = cells[row, zone]
                        domain |= int(scratch.size[at] > 0) << zone
                    scratch.domains[item] = domain
                    scratch.homeless[item] = max(0, homeless[row, column])
                    scratch.homeless_size[item] = homeless_size[own, column]
                scratch.busy, scratch.full_core_cpus = busy[row], full_core_cpus[row]
                scratch.whole_cores = split_known[row]
                code = admit.decide(made, scratch)
                undecided += code == ASK
                codes[place] = max(1, code - penalty) if code > 0 else code
                for step in range(made.steps):
                    masks[place, step] = scratch.masks[step] if code >= 0 else 0
        return undecided if fingerprint else 0

    return _machine_code(evaluate_rows)


def _counts_entry(fingerprint: int) -> Any:  # noqa: C901 (as above)
    """The same for counting."""

    def count_rows(
        plan: Any,
        free: Any,
        stock: Any,
        size: Any,
        allocatable: Any,
        homeless: Any,
        homeless_size: Any,
        full_core_cpus: Any,
        cells: Any,
        busy: Any,
        split_known: Any,
        kinds: Any,
        loose: Any,
        pods: Any,
        most_pods: Any,
        spare: Any,
        settled: Any,
        pending_shape: Any,
        own: int,
        asked: Any,
        outright: int,
        rows: Any,
        codes: Any,
        spread: Any,
    ) -> int:
        made, nothing = plan[0], fingerprint == 0
        space, alone = np.empty(1, WORK), np.empty(MOST_STEPS, np.int64)
        asks_nothing = counting.asks_nothing(made)
        for number in range(len(rows)):
            row = np.uint32(rows[number])
            most = np.int64(most_pods[row]) - pods[row]
            for each in range(len(asked)):
                column = np.uint32(asked[each, 0])
                most = min(most, spare[row, column] // asked[each, 1])
            shape = pending_shape[row]
            if most <= 0 or (outright < 0 and outright != OPEN):
                codes[number] = NO_ROOM if most <= 0 else outright
                continue
            if outright != OPEN or asks_nothing:
                spread[number, ZONES], codes[number] = most, NO_ROOM
                continue
            if loose[row] or shape == NOT_EXACT:
                codes[number] = ASK
                continue
            scratch, there = space[0], stock[row]
            in_order = own == _NO_SHAPE or shape in (NONE_PENDING, own)
            alone[0] = -1
            code = 0
            # Twice where order counts: first without the pods that are on their way.
            for turn in range(0 if in_order else 1, -1, -1):
                for item in range(made.places):
                    column, domain = made.columns[item], 0
                    for zone in range(made.zones):
                        at = item * ZONES + zone
                        scratch.free[at] = max(0, settled[row, zone, column] if turn else free[row, zone, column])
                        scratch.size[at] = size[there, zone, column]
                        scratch.allocatable[at] = allocatable[there, zone, column]
                        scratch.cells[zone] = cells[row, zone]
                        domain |= int(scratch.size[at] > 0) << zone
                    scratch.domains[item] = domain
                    scratch.homeless[item] = max(0, homeless[row, column])
                    scratch.homeless_size[item] = homeless_size[there, column]
                scratch.busy, scratch.full_core_cpus = busy[row], full_core_cpus[row]
                scratch.whole_cores = split_known[row]
                if turn:
                    code = counting.first(made, scratch, alone)
            codes[number] = ASK if code < 0 else counting.count(made, scratch, most, alone, spread[number])
        return int(nothing)

    return _machine_code(count_rows)


def _amounts_entry(fingerprint: int) -> Any:
    """The same for amounts. `rules`: by row what is evaluated, its weight, the first and the last of what it asks for,
    and where its line begins."""

    def evaluate_amounts(
        rules: Any,
        asked: Any,
        lines: Any,
        allocatable: Any,
        requested: Any,
        scored: Any,
        pods: Any,
        most_pods: Any,
        places: Any,
        found: Any,
        place_of: Any,
        base: Any,
        codes: Any,
        by_code: Any,
        ranks: Any,
    ) -> tuple[int, int]:
        amounts, weights, resources = asked[:, 1].copy(), asked[:, 2].copy(), len(asked)
        offered, used = np.empty((resources, LANES), np.int64), np.empty((resources, LANES), np.int64)
        there, most, outcomes = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES, np.int64)
        sums, shares = np.empty((nodeamounts.SUMS, LANES), np.int64), np.empty((nodeamounts.SHARES, LANES))
        for first in range(0, len(places), LANES):
            count = min(LANES, len(places) - first)
            for lane in range(count):
                place = np.uint32(places[first + lane])
                there[lane], most[lane] = pods[place], most_pods[place]
                found[first + lane] = 0
            for each in range(resources):
                column, before = np.uint32(asked[each, 0]), scored if asked[each, 3] else requested
                for lane in range(count):
                    place = np.uint32(places[first + lane])
                    offered[each, lane], used[each, lane] = allocatable[column, place], before[column, place]
            for each in range(len(rules)):
                weight, start, end = rules[each, 1], rules[each, 2], rules[each, 3]
                nodeamounts.evaluate(
                    rules[each, 0],
                    amounts[start:end],
                    weights[start:end],
                    lines[rules[each, 4] :],
                    offered[start:end],
                    used[start:end],
                    there,
                    most,
                    outcomes,
                    sums,
                    shares,
                    count,
                )
                for lane in range(count):
                    before, outcome = found[first + lane], outcomes[lane]
                    found[first + lane] = before + weight * outcome if weight else NEVER if outcome else before
        best, fitting = OUT, 0
        for row in range(len(ranks)):
            ranks[row] = max(OUT, found[np.uint32(place_of[row])] + base[row] + by_code[codes[row]])
            best, fitting = max(best, ranks[row]), fitting + (ranks[row] != OUT)
        return best, fitting if fingerprint else 0

    return _machine_code(evaluate_amounts)


def fingerprint() -> int:
    constants = ASK, NO_ROOM, OPEN, ANY_KIND, _NO_SHAPE, NONE_PENDING, NOT_EXACT, NEVER, OUT
    return machinecode.fingerprint(ROW_KERNELS, PLAN, WORK, constants)


machinecode.register(ROW_KERNELS)
_compiled_rows = _rows_entry(fingerprint())
_compiled_counts = _counts_entry(fingerprint())
_compiled_amounts = _amounts_entry(fingerprint())
