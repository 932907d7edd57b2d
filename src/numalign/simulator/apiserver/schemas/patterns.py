"""Regular expressions of schemas, matched in linear time as Go does.

`validate` calls `matches`. Python's own matcher tries alternatives one after the other, so that a pattern such as
`^(a+)+$` and a value of thirty characters stop the server for minutes. Here the parsed pattern becomes an automaton
that follows all alternatives at once; the sets of places that it can be in are remembered per character.

A pattern that Go supports and this module does not (word boundaries, very large counts) is not enforced."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final

MAX_NODES: Final = 2000
MAX_STATES: Final = 500
"""Sets of nodes that are remembered."""
MAX_STEPS: Final = 2_000_000
"""Steps for one value that are not remembered; a value that needs more is accepted."""
ANY_NUMBER: Final = import_module("re._constants").MAXREPEAT
CATEGORIES: Final = {
    "DIGIT": frozenset(string.digits),
    "SPACE": frozenset(string.whitespace),
    "WORD": frozenset(string.ascii_letters + string.digits + "_"),
}
BEGIN, END, SPLIT, CHARACTER, FOUND = range(5)
Accepts = Callable[[str], bool]
Nodes = frozenset[int]


class Unsupported(Exception):
    pass


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text."""
    automaton = _automaton(pattern)
    return automaton is None or automaton.finds(text)


@functools.lru_cache(maxsize=512)
def _automaton(pattern: str) -> Automaton | None:
    """None for a pattern that is not enforced."""
    try:
        return Automaton(import_module("re._parser").parse(pattern, re.ASCII))
    except (re.error, Unsupported, OverflowError):
        return None


class Automaton:
    def __init__(self, parsed: Any) -> None:
        self._kinds = [FOUND]
        self._accepts: list[Accepts] = [lambda character: False]
        self._next: list[list[int]] = [[]]
        self._start = self._sequence(parsed, 0, parsed.state.flags)
        self._known: dict[Nodes, dict[str, Nodes]] = {}
        self._left = 0

    def finds(self, text: str) -> bool:
        self._left = MAX_STEPS
        nodes = self._reached([self._start], begins=True)
        for character in text:
            if 0 in nodes or self._left < 0:
                return True
            known = self._known.get(nodes)
            after = known.get(character) if known is not None else None
            nodes = self._step(nodes, character) if after is None else after
        return 0 in nodes or 0 in self._reached(nodes, begins=not text, ends=True)

    def _step(self, nodes: Nodes, character: str) -> Nodes:
        self._left -= len(nodes)
        taken = [node for node in nodes if self._kinds[node] == CHARACTER and self._accepts[node](character)]
        # A match may begin at every character.
        after = self._reached([self._start, *(place for node in taken for place in self._next[node])])
        if len(self._known) > MAX_STATES:
            self._known.clear()
        self._known.setdefault(nodes, {})[character] = after
        return after

    def _reached(self, nodes: Iterable[int], *, begins: bool = False, ends: bool = False) -> Nodes:
        """The nodes that can be reached without a character."""
        free = {SPLIT} | ({BEGIN} if begins else set()) | ({END} if ends else set())
        seen, waiting = set(nodes), list(nodes)
        while waiting:
            node = waiting.pop()
            if self._kinds[node] in free:
                new = [each for each in self._next[node] if each not in seen]
                seen.update(new)
                waiting += new
        self._left -= len(seen)
        return frozenset(seen)

    def _node(self, kind: int, after: list[int], accepts: Accepts = lambda character: False) -> int:
        if len(self._kinds) >= MAX_NODES:
            raise Unsupported
        self._kinds.append(kind)
        self._next.append(after)
        self._accepts.append(accepts)
        return len(self._kinds) - 1

    def _sequence(self, parsed: Any, after: int, flags: int) -> int:
        for operation, argument in reversed(list(parsed)):
            after = self._item(str(operation), argument, after, flags)
        return after

    def _item(self, operation: str, argument: Any, after: int, flags: int) -> int:
        if operation == "BRANCH":
            return self._node(SPLIT, [self._sequence(each, after, flags) for each in argument[1]])
        if operation == "SUBPATTERN":
            _, added, removed, inner = argument
            return self._sequence(inner, after, (flags | added) & ~removed)
        if operation in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(argument, after, flags)
        if operation == "AT":
            return self._anchor(str(argument), after, flags)
        return self._node(CHARACTER, [after], _accepts(operation, argument, flags))

    def _repeat(self, repeated: tuple[int, int, Any], after: int, flags: int) -> int:
        least, most, inner = repeated
        if most == ANY_NUMBER:
            again = self._node(SPLIT, [after])
            self._next[again].append(self._sequence(inner, again, flags))
            after = again
        else:
            end = after
            for _ in range(most - least):
                after = self._node(SPLIT, [end, self._sequence(inner, after, flags)])
        for _ in range(least):
            after = self._sequence(inner, after, flags)
        return after

    def _anchor(self, where: str, after: int, flags: int) -> int:
        if flags & re.MULTILINE or where not in ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING"):
            raise Unsupported
        # In Go `$` matches only at the end of the text; in Python also before a final newline.
        return self._node(BEGIN if "BEGINNING" in where else END, [after])


def _accepts(operation: str, argument: Any, flags: int) -> Accepts:
    found = _accepts_case(operation, argument, flags)
    if not flags & re.IGNORECASE:
        return found
    return lambda character: found(character) or found(character.lower()) or found(character.upper())


def _accepts_case(operation: str, argument: Any, flags: int) -> Accepts:
    if operation == "LITERAL":
        return chr(argument).__eq__
    if operation == "NOT_LITERAL":
        return chr(argument).__ne__
    if operation == "ANY":
        return (lambda character: True) if flags & re.DOTALL else "\n".__ne__
    if operation == "RANGE":
        first, last = map(chr, argument)
        return lambda character: first <= character <= last
    if operation == "CATEGORY":
        name = str(argument).removeprefix("CATEGORY_")
        wanted, members = not name.startswith("NOT_"), CATEGORIES[name.removeprefix("NOT_")]
        return lambda character: (character in members) is wanted
    if operation == "IN":
        return _one_of(argument, flags)
    raise Unsupported


def _one_of(items: Any, flags: int) -> Accepts:
    is_negated = str(items[0][0]) == "NEGATE"
    every = [_accepts_case(str(operation), argument, flags) for operation, argument in items[is_negated:]]
    if is_negated and flags & re.IGNORECASE:
        raise Unsupported
    return lambda character: any(accepts(character) for accepts in every) is not is_negated
