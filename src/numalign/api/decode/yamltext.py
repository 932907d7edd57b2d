"""Parses YAML text into plain values, each document with its position.

The command line, the embedded API server and scenarios read YAML through `documents`. Every error is a BadObject with
the line, and no text can crash the process: nesting and the expansion of aliases are limited before anything is
constructed. The caller limits the length. Scalars have kubectl's meaning, so a date is text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct

from numalign.api import errors

MAX_DEPTH = 100
MAX_NODES = 1_000_000
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


class Document(Struct, frozen=True):
    """One document of a file: its value, and the words that lead a person to it."""

    value: object
    place: str


def documents(text: str, name: str) -> list[Document]:
    """All documents of the text that are not empty; `name` is what messages call it."""
    try:
        _require_modest(text, name)
        return list(_constructed(text, name))
    except yaml.MarkedYAMLError as problem:
        raise _bad_yaml(name, problem) from None
    except yaml.YAMLError as problem:
        raise errors.BadObject("File", name, "", f"cannot be read as YAML: {_first_line(problem)}") from None


def _require_modest(text: str, name: str) -> None:
    """Walk the events, which are flat: composing a deeply nested file would overflow the stack of the C reader."""
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


def _constructed(text: str, name: str) -> Iterator[Document]:
    loader = Loader(text)
    try:
        number = 0
        while loader.check_node():
            node = loader.get_node()
            number += 1
            _require_small(node, name, {})
            value = loader.construct_document(node)
            if value is not None:
                yield Document(value, f"{name}, document {number}, line {node.start_mark.line + 1}")
    finally:
        loader.dispose()


def _require_small(node: yaml.Node, name: str, sizes: dict[int, int]) -> int:
    """How many values the node stands for once its aliases are written out; merges (<<) never make more."""
    known = sizes.get(id(node))
    if known == 0:
        raise _at(name, node.start_mark, "an alias refers to what it is part of; write the value out")
    if known is None:
        _require_plain(node, name)
        sizes[id(node)] = 0
        known = sizes[id(node)] = 1 + sum(_require_small(child, name, sizes) for child in _children(node, name))
    if known > MAX_NODES:
        raise _at(name, node.start_mark, f"its aliases stand for more than {MAX_NODES:,} values; write less")
    return known


def _require_plain(node: yaml.Node, name: str) -> None:
    if node.tag not in PLAIN:
        tag = errors.echo(node.tag.replace(CORE, "!!"))
        raise _at(name, node.start_mark, f"the tag {tag} is nothing that Kubernetes reads; leave it out")
    if node.tag in NUMBERS and len(node.value) > MAX_NUMBER:
        raise _at(name, node.start_mark, f"a number of more than {MAX_NUMBER} characters; put text in quotes")


def _children(node: yaml.Node, name: str) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise _at(name, key.start_mark, f"the key {errors.echo(key.value)} is there twice; remove one")
                seen.add(key.value)
            yield from (key, value)


def _at(name: str, mark: Any, why: str) -> errors.BadObject:
    return errors.BadObject("File", name, f"line {mark.line + 1}, column {mark.column + 1}", why)


def _bad_yaml(name: str, problem: yaml.MarkedYAMLError) -> errors.BadObject:
    mark = problem.problem_mark or problem.context_mark
    what = ", ".join(filter(None, (problem.context, problem.problem))) or "cannot be read"
    why = f"not YAML: {_first_line(what)}"
    return _at(name, mark, why) if mark else errors.BadObject("File", name, "", why)


def _first_line(problem: object) -> str:
    return errors.clipped(re.split(r"[\r\n]", str(problem), maxsplit=1)[0])
