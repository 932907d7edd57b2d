"""What a report in the format of another publisher leaves out: resources by name, pods by pattern.

`numalign agent run --exclude FILE` takes the files of RTE (`resourceExclude`, `podExclude`) and NFD (`excludeList`).
Excluded pods are not part of the fingerprint, but what they hold counts as used; RTE reports it as free. Patterns are
Go's path.Match: only ^ negates a class, and a malformed pattern matches nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.sources import hostfiles
from numalign.api import errors
from numalign.api.decode import decode, yamltext
from numalign.api.decode.structs import Wire

KEPT: Final = 1024
NO_SENSE: Final = re.compile(r"(?!)")


def matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(KEPT)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_Reader(pattern).expression(), re.DOTALL)
    except IndexError:
        return NO_SENSE


class _Reader:
    """Walks a pattern; IndexError where it is malformed."""

    def __init__(self, pattern: str) -> None:
        self.left = list(pattern)

    def expression(self) -> str:
        parts = []
        while self.left:
            match self.left.pop(0):
                case "*":
                    parts.append("[^/]*")
                case "?":
                    parts.append("[^/]")
                case "[":
                    parts.append(self._class())
                case "\\":
                    parts.append(re.escape(self.left.pop(0)))
                case letter:
                    parts.append(re.escape(letter))
        return "".join(parts)

    def _class(self) -> str:
        negated = self.left[0] == "^"
        if negated:
            self.left.pop(0)
        ranges = [self._range()]
        while self.left[0] != "]":
            ranges.append(self._range())
        self.left.pop(0)
        members = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
        if not members:
            return "." if negated else "(?!)"
        return f"[{'^' if negated else ''}{members}]"

    def _range(self) -> tuple[str, str]:
        low = high = self._member()
        if self.left[0] == "-":
            self.left.pop(0)
            high = self._member()
        return low, high

    def _member(self) -> str:
        letter = self.left.pop(0)
        if letter in "-]":
            raise IndexError
        return self.left.pop(0) if letter == "\\" else letter


KIND: Final = "Exclusions"
EVERYWHERE: Final = "*"
KEYS: Final = {key.lower(): key for key in ("excludeList", "resourceExclude", "podExclude")}
"""Keys by lower case: both programs read them case-insensitively, as Go does."""
ByNode = Mapping[str, tuple[str, ...]]
"""Node name, or * for all nodes, to names of resources."""


class PodPattern(Wire, frozen=True):
    """Both must match."""

    namespace_pattern: str = ""
    name_pattern: str = ""


class _ExclusionsFile(Wire, frozen=True):
    exclude_list: dict[str, tuple[str, ...]] | None = None
    resource_exclude: dict[str, tuple[str, ...]] | None = None
    pod_exclude: tuple[PodPattern, ...] | None = None


class Exclusions(Struct, frozen=True):
    resources: frozenset[str] = frozenset()
    pods: tuple[PodPattern, ...] = ()

    def has(self, namespace: str, name: str) -> bool:
        """Whether the pod is excluded."""
        return any(
            matches(each.namespace_pattern, namespace) and matches(each.name_pattern, name) for each in self.pods
        )


NONE: Final = Exclusions()


def read(file: Path, node: str) -> Exclusions:
    """BadObject where the file cannot be read, so that nothing excluded is ever published."""
    try:
        raw = hostfiles.content(file)
    except hostfiles.Unreadable as problem:
        raise errors.BadObject(KIND, str(file), "", str(problem)) from None
    if raw is None:
        raise errors.BadObject(KIND, str(file), "", "there is no such file")
    found = NONE
    for document in yamltext.documents(raw.decode("utf-8", "replace"), str(file)):
        found = _of(document.value, str(file), node)
    return found


def _of(value: object, name: str, node: str) -> Exclusions:
    if not isinstance(value, Mapping):
        raise errors.BadObject(
            KIND, name, "", f"is {errors.echo(value)}; write excludeList, resourceExclude or podExclude"
        )
    try:
        read = decode.decode(
            _ExclusionsFile, {KEYS.get(str(key).lower(), str(key)): each for key, each in value.items()}
        )
    except errors.BadObject as problem:
        raise errors.BadObject(KIND, name, problem.field, problem.why) from None
    resources = on_node(read.exclude_list or {}, node) | on_node(read.resource_exclude or {}, node)
    return Exclusions(resources, read.pod_exclude or ())


def on_node(by_node: ByNode, node: str) -> frozenset[str]:
    """Exclusions of all nodes and of this one."""
    return frozenset((*by_node.get(EVERYWHERE, ()), *by_node.get(node, ())))
