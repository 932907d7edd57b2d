"""Parses YAML text into plain values, each document with its position.

Every reader of YAML calls `documents`: the command line, the agent, kubeconfigs, the embedded API server, scenarios.
Every error is a BadYAML with the line, and no text can crash the process: nesting and the expansion of aliases are
limited before anything is constructed. The caller limits the length. Scalars have kubectl's meaning, so a date is
text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from msgspec import Struct

from numalign.api import errors

MAX_DEPTH = 100
MAX_NODES = 1_000_000
TEXT_PER_NODE = 64
"""Characters of a scalar that count as one more value, so that aliases of a long text multiply no more than others."""
MAX_NUMBER = 400
"""Characters of a number: reading one takes the square of its length."""

CORE = "tag:yaml.org,2002:"
PLAIN = frozenset(CORE + name for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge"))
NUMBERS = frozenset({CORE + "int", CORE + "float"})
TEXT_TO_KUBERNETES = frozenset({CORE + "timestamp", CORE + "value"})

FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FAST):  # type: ignore[misc, valid-type]
    """Leaves dates and `=` as text, as Kubernetes does, and reports the position of a value that does not match its
    tag."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way to configure
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in TEXT_TO_KUBERNETES]
        for first, resolvers in FAST.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, OverflowError):
            wanted = node.tag.removeprefix(CORE)
            raise yaml.MarkedYAMLError(problem=f"not a value of type {wanted}", problem_mark=node.start_mark) from None


@dataclass(eq=False)
class BadYAML(errors.BadObject):
    """Has the position and the parser's words, too, for a reader that reports errors in another parser's form."""

    line: int | None = None
    """Counts from 0."""
    problem: str = ""
    scanner: bool = False
    """The scanner found it, not the parser behind it."""


class Document(Struct, frozen=True):
    """One document of a file: its value, and its position in words."""

    value: object
    place: str


def documents(text: str | bytes, name: str, *, repeated_keys: bool = False) -> list[Document]:
    """All documents of the text that are not empty; `name` is what messages call it. With `repeated_keys` the last of
    several equal keys counts, as in the API server; without it, they are an error."""
    try:
        _require_modest(text, name)
        return list(_constructed(text, name, repeated_keys))
    except yaml.MarkedYAMLError as problem:
        raise _bad_yaml(name, problem) from None
    except yaml.YAMLError as problem:
        why = _first_line(problem)
        raise BadYAML("File", name, "", f"cannot be read as YAML: {why}", problem=why) from None


def _require_modest(text: str | bytes, name: str) -> None:
    """Walks the events, which are flat: composing a deeply nested file would overflow the stack of the C reader."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _at(name, event.start_mark, f"nested more than {MAX_DEPTH} levels deep; no object needs that")
        if count > 2 * MAX_NODES:
            raise _at(name, event.start_mark, f"more than {MAX_NODES:,} values; split the file")


def _constructed(text: str | bytes, name: str, repeated_keys: bool) -> Iterator[Document]:
    loader = Loader(text)
    try:
        number = 0
        while loader.check_node():
            node = loader.get_node()
            number += 1
            _Limits(name, repeated_keys).require_small(node)
            value = loader.construct_document(node)
            if value is not None:
                yield Document(value, f"{name}, document {number}, line {node.start_mark.line + 1}")
    finally:
        loader.dispose()


STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def line(text: str | bytes, path: str) -> int:
    """The line, from 1, of the value with this path (`fields.Field.path`) in a text of one document.

    Where there is no such value: the line of the innermost one around it. `documents` has read the text before."""
    loader = Loader(text)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    found = node.start_mark.line if node is not None else 0
    for index, key in STEP.findall(path):
        key_node, node = _child(node, index or key)
        if node is None:
            break
        found = (key_node or node).start_mark.line
    return int(found) + 1


def _child(node: Any, name: str) -> tuple[Any, Any]:
    """The node of a key, if any, and the node of its value; None: there is none."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == name), (None, None))
    if isinstance(node, yaml.SequenceNode) and name.isdecimal() and int(name) < len(node.value):
        return None, node.value[int(name)]
    return None, None


class _Limits:
    """Measures one document before it is constructed."""

    def __init__(self, name: str, repeated_keys: bool) -> None:
        self.name = name
        self.repeated_keys = repeated_keys
        self.sizes: dict[int, int] = {}

    def require_small(self, node: yaml.Node) -> int:
        """The number of values of the node with its aliases expanded; merges (<<) never add values."""
        known = self.sizes.get(id(node))
        if known == 0:
            raise _at(self.name, node.start_mark, "an alias refers to what it is part of; write the value out")
        if known is None:
            _require_plain(node, self.name)
            self.sizes[id(node)] = 0
            text = len(node.value) // TEXT_PER_NODE if isinstance(node, yaml.ScalarNode) else 0
            known = self.sizes[id(node)] = 1 + text + sum(map(self.require_small, self._children(node)))
        if known > MAX_NODES:
            raise _at(self.name, node.start_mark, f"its aliases stand for more than {MAX_NODES:,} values; write less")
        return known

    def _children(self, node: yaml.Node) -> Iterator[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<" and not self.repeated_keys:
                    if key.value in seen:
                        why = f"the key {errors.echo(key.value)} is there twice; remove one"
                        raise _at(self.name, key.start_mark, why)
                    seen.add(key.value)
                yield from (key, value)


def _require_plain(node: yaml.Node, name: str) -> None:
    if node.tag not in PLAIN:
        tag = errors.echo(node.tag.replace(CORE, "!!"))
        raise _at(name, node.start_mark, f"the tag {tag} is nothing that Kubernetes reads; leave it out")
    if node.tag in NUMBERS and len(node.value) > MAX_NUMBER:
        raise _at(name, node.start_mark, f"a number of more than {MAX_NUMBER} characters; put text in quotes")


def _at(name: str, mark: Any, why: str) -> BadYAML:
    return BadYAML("File", name, f"line {mark.line + 1}, column {mark.column + 1}", why, mark.line, why)


def _bad_yaml(name: str, problem: yaml.MarkedYAMLError) -> BadYAML:
    mark = problem.problem_mark or problem.context_mark
    what = ", ".join(filter(None, (problem.context, problem.problem))) or "cannot be read"
    why = f"not YAML: {_first_line(what)}"
    found = _at(name, mark, why) if mark else BadYAML("File", name, "", why)
    found.problem = _first_line(problem.problem or what)
    found.scanner = isinstance(problem, yaml.scanner.ScannerError)
    return found


def _first_line(problem: object) -> str:
    return errors.clipped(re.split(r"[\r\n]", str(problem), maxsplit=1)[0])
