"""What would make a pod fit, as data and as a sentence.

Whoever finds one has asked the model and heard yes. Amounts are integers: cpu in thousandths, everything else in whole
units; pods are namespace/name, zones real ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from numalign.placement import wording
from numalign.placement.amounts import bare, named

MOST_NAMED: Final = 3
"""Pods and nodes that a sentence names; more are counted."""


class Suggestion(Struct, frozen=True, kw_only=True, tag_field="kind", rename="camel"):
    """Base of all kinds."""


class Freeing(Suggestion, frozen=True, kw_only=True, tag="free-pods"):
    """If these pods were gone from the node."""

    node: str
    pods: tuple[str, ...]
    resource: str = ""
    """What the node lacks, if that is one resource, and how much of it these pods hold there."""
    amount: int = 0
    zones: tuple[int, ...] = ()


class Shrinking(Suggestion, frozen=True, kw_only=True, tag="ask-for-less"):
    """If a container asked for that much."""

    container: str
    resource: str
    amount: int
    instead_of: int
    nodes: tuple[str, ...]


class Oversized(Suggestion, frozen=True, kw_only=True, tag="too-large"):
    """No node is large enough; an empty one would be if the container asked for that much."""

    container: str
    resource: str
    amount: int
    instead_of: int
    fits_now: Shrinking | None = None
    policy: str = ""
    """Under which some empty node would take it as it is."""


class Relaxing(Suggestion, frozen=True, kw_only=True, tag="change-rule"):
    """If it were not for a rule."""

    plugin: str
    change: str
    """Half a sentence: if it tolerated ..."""
    nodes: tuple[str, ...]


class Absent(Suggestion, frozen=True, kw_only=True, tag="no-such-resource"):
    resource: str


class Waiting(Suggestion, frozen=True, kw_only=True, tag="wait"):
    """It hangs on pods that are on their way to the node; nobody can say more before they have arrived."""

    node: str
    pods: tuple[str, ...]


AnySuggestion = Freeing | Shrinking | Oversized | Relaxing | Absent | Waiting


def sentence(found: AnySuggestion) -> str:
    match found:
        case Freeing():
            return _freeing(found)
        case Shrinking():
            return f"would fit {_on(found.nodes)} with {_instead(found)}"
        case Oversized():
            return _oversized(found)
        case Relaxing():
            return f"would fit {_on(found.nodes)} {found.change}"
        case Absent(resource=resource):
            return f"no node has any {resource}"
        case Waiting(node=node, pods=pods):
            arrived = "has" if len(pods) == 1 else "have"
            return f"will be clear for {node} when {_pods(pods)} {arrived} arrived there"


def _freeing(found: Freeing) -> str:
    said = f"would fit on {found.node} without {_pods(found.pods)}"
    if not found.amount:
        return said
    zones = f" in zone{'s' * (len(found.zones) > 1)} {wording.joined([*map(str, found.zones)])}" if found.zones else ""
    hold = "holds" if len(found.pods) == 1 else "hold"
    return f"{said}, which {hold} {named(found.resource, found.amount)}{zones}"


def _oversized(found: Oversized) -> str:
    parts = [f"no node is big enough, even when empty: ask for {_instead(found, at_most=True)}"]
    now = found.fits_now
    if now is not None and now.amount == found.amount:
        parts.append(f" (which would fit {_on(now.nodes)} now)")
    elif now is not None:
        parts.append(f" ({bare(now.resource, now.amount)} would fit {_on(now.nodes)} now)")
    if found.policy:
        parts.append(f", or use nodes with policy {found.policy}")
    return "".join(parts)


def _instead(found: Shrinking | Oversized, *, at_most: bool = False) -> str:
    whose = f" in container {found.container}" if found.container else ""
    most = "at most " if at_most else ""
    wanted = bare(found.resource, found.instead_of, up=True)
    return f"{most}{named(found.resource, found.amount)} instead of {wanted}{whose}"


def _on(nodes: Sequence[str]) -> str:
    """On the node, or on how many."""
    return f"on {nodes[0]}" if len(nodes) == 1 else f"on {len(nodes)} nodes ({_few(nodes)})"


def _pods(names: Sequence[str]) -> str:
    shown = [name.removeprefix("default/") for name in names]
    return f"pod{'s' * (len(names) != 1)} {_few(shown)}"


def _few(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return wording.joined([*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
