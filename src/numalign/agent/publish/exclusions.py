"""What a report in another publisher's form leaves out: resources by name, pods by patterns.

`numalign agent run --exclude FILE` takes the files that users of RTE (`resourceExclude`, `podExclude`) and NFD
(`excludeList`) have; `inventory` asks what is left out on this node. Excluded pods are not signed for. What they hold
is held all the same: RTE calls it free."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.publish import patterns
from numalign.agent.sources import hostfiles
from numalign.api import errors
from numalign.api.decode import decode, yamltext
from numalign.api.decode.structs import Wire

KIND: Final = "Exclusions"
EVERYWHERE: Final = "*"
KEYS: Final = {key.lower(): key for key in ("excludeList", "resourceExclude", "podExclude")}
"""As they are meant, by their small letters: both programs read them in any case, as Go does."""
ByNode = Mapping[str, tuple[str, ...]]
"""Node name, or * for all nodes, to names of resources."""


class PodPattern(Wire, frozen=True):
    """Both must match."""

    namespace_pattern: str = ""
    name_pattern: str = ""


class _File(Wire, frozen=True):
    exclude_list: dict[str, tuple[str, ...]] | None = None
    resource_exclude: dict[str, tuple[str, ...]] | None = None
    pod_exclude: tuple[PodPattern, ...] | None = None


class Exclusions(Struct, frozen=True):
    resources: frozenset[str] = frozenset()
    pods: tuple[PodPattern, ...] = ()

    def has(self, namespace: str, name: str) -> bool:
        """Whether the pod is left out."""
        return any(
            patterns.matches(each.namespace_pattern, namespace) and patterns.matches(each.name_pattern, name)
            for each in self.pods
        )


NONE: Final = Exclusions()


def read(file: Path, node: str) -> Exclusions:
    """BadObject where the file cannot be read: what should be left out is never told by mistake."""
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
        told = decode.decode(_File, {KEYS.get(str(key).lower(), str(key)): each for key, each in value.items()})
    except errors.BadObject as problem:
        raise errors.BadObject(KIND, name, problem.field, problem.why) from None
    resources = on_node(told.exclude_list or {}, node) | on_node(told.resource_exclude or {}, node)
    return Exclusions(resources, told.pod_exclude or ())


def on_node(by_node: ByNode, node: str) -> frozenset[str]:
    """What is left out on all nodes, and on this one."""
    return frozenset((*by_node.get(EVERYWHERE, ()), *by_node.get(node, ())))
