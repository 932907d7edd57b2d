"""Sets of field paths, and their wire form FieldsV1.

A path is a tuple of steps in their wire spelling: `f:name` is a field, `k:{...}` a list item by its keys, `v:...` by
its value, `i:0` by its index. So a set of paths is a Python set. `managedfields` reads and writes them, `typed` makes
them from objects."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from numalign.simulator.apiserver.schemas import gotext
from numalign.simulator.trees import Tree

FieldPath = tuple[str, ...]
FieldSet = set[FieldPath]

SELF: Final = "."
ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


class FieldTrie:
    """A set of paths as a tree: whether the path so far is a member, and the steps below."""

    __slots__ = ("below", "member")

    def __init__(self) -> None:
        self.member = False
        self.below: dict[str, FieldTrie] = {}


def trie(paths: Iterable[FieldPath]) -> FieldTrie:
    root = FieldTrie()
    for path in paths:
        node = root
        for step in path:
            node = node.below.setdefault(step, FieldTrie())
        node.member = True
    return root


def by_keys(values: dict[str, Any]) -> str:
    """The step to a list item with these key fields."""
    return "k:" + gotext.go_json(values)


def by_value(value: Any) -> str:
    return "v:" + gotext.go_json(value)


def decode(wire: Tree) -> FieldSet:
    found: FieldSet = set()
    _decode(wire, (), found)
    return found


def _decode(wire: Tree, path: FieldPath, found: FieldSet) -> None:
    for step, below in wire.items():
        if step == SELF:
            found.add(path)
        elif not below:
            found.add((*path, _canonical(step)))
        else:
            _decode(below, (*path, _canonical(step)), found)


def _canonical(step: str) -> str:
    """Keys may have any order and spacing if a client wrote managedFields itself."""
    if step.startswith("k:"):
        return by_keys(json.loads(step[2:]))
    return by_value(json.loads(step[2:])) if step.startswith("v:") else step


def encode(fields: FieldSet) -> Tree:
    return _encoded(trie(fields))


def _encoded(node: FieldTrie) -> Tree:
    wire: Tree = {SELF: {}} if node.member and node.below else {}
    for step in sorted(node.below, key=_rank):
        wire[step] = _encoded(node.below[step])
    return wire


def ordered(fields: FieldSet) -> Iterator[FieldPath]:
    """The paths in the server's order: the members of a level, then those of each level below."""
    return _walk(trie(fields), ())


def _walk(node: FieldTrie, path: FieldPath) -> Iterator[FieldPath]:
    steps = sorted(node.below, key=_rank)
    yield from ((*path, step) for step in steps if node.below[step].member)
    for step in steps:
        yield from _walk(node.below[step], (*path, step))


def _rank(step: str) -> tuple[Any, ...]:
    sort = ORDER[step[0]]
    if sort == 0:
        return sort, step[2:]
    if sort == 1:
        return sort, *((name, *_value_rank(value)) for name, value in json.loads(step[2:]).items())
    return (sort, *_value_rank(json.loads(step[2:])))


def _value_rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts before other values."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))


def text(path: FieldPath) -> str:
    """The path in messages: `.spec.containers[name="a"].image`."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    rest = step[2:]
    if step[0] == "f":
        return "." + rest
    if step[0] == "k":
        return "[" + ",".join(f"{name}={_quoted(value)}" for name, value in json.loads(rest).items()) + "]"
    return f"[={_quoted(json.loads(rest))}]" if step[0] == "v" else f"[{rest}]"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def without(fields: FieldSet, excluded: Iterable[FieldPath]) -> FieldSet:
    """The fields without the excluded paths and everything below them."""
    prefixes = tuple(excluded)
    return {path for path in fields if not any(path[: len(prefix)] == prefix for prefix in prefixes)}
