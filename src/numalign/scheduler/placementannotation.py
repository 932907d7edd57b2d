"""The annotation with the zones in which the scheduler expects a pod's containers.

`binder` sends it with the Binding, and the API server merges it into the pod. The cluster state of a new leader
reads it, so that bound pods that no report shows yet are charged to the right zones. docs/use/scheduler.md has the
grammar. The annotation is a forecast: the kubelet does not read it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from numalign.api import errors
from numalign.api.attributes import directresult, grammar
from numalign.api.objects.meta import ObjectMeta
from numalign.placement.columns.holdings import Aligned
from numalign.placement.decisions import Decision

NAME: Final = "numalign.io/placement"
WAITS: Final = "required-plugins.noderesource.dev"
"""NRI's annotation with the plugins without which a runtime creates no container of the pod, where the validator of
the runtime is on."""
AGENT: Final = '["numalign"]'
MOST_REMEMBERED: Final = 1024

Zones = tuple[int, ...]
"""Zone ids, ascending."""


def annotations(decision: Decision, pod: ObjectMeta, *, koordinator: bool = False) -> dict[str, str]:
    """What a Binding adds to the pod: the decision for the agent of a node in direct mode, else the forecast."""
    direct = decision.direct
    if direct is None:
        expected = of(decision)
        return {NAME: expected} if expected else {}
    said = {directresult.RESULT: directresult.encode(direct)}
    if WAITS not in pod.annotations:
        said[WAITS] = AGENT
    if koordinator:
        said[directresult.KOORDINATOR_RESULT] = directresult.encode_for_koordinator(direct)
        if direct.devices:
            said[directresult.KOORDINATOR_DEVICES] = directresult.encode_devices(direct)
    return said


def of(decision: Decision) -> str:
    """The annotations for a decision; empty: no container of the pod is aligned."""
    return _written(decision.placement)


@lru_cache(maxsize=MOST_REMEMBERED)
def _written(placement: tuple[Aligned, ...]) -> str:
    """Cached, because replicas have few different placements."""
    possible = {each.container: each.zones for each in placement if each.zones}
    return encode(possible) if possible else ""


def encode(possible: Mapping[str, Sequence[Zones]]) -> str:
    """Encodes by container the sets of zones of which the kubelet will choose one; omits containers without one."""
    parts = [f"{grammar.word(name)}={_choices(sets)}" for name, sets in sorted(possible.items()) if sets]
    return grammar.tagged(";".join(parts))


def decode(pod: ObjectMeta) -> dict[str, tuple[Zones, ...]] | None:
    """The pod's annotation; None: it has none, or one of an unknown version. BadObject if it is malformed."""
    text = pod.annotations.get(NAME)
    if text is None:
        return None
    try:
        version, body = grammar.version_and_body(text)
        if version != grammar.VERSION:
            return None
        return grammar.unique(map(_container, grammar.split(body, ";")))
    except grammar.AttributeTextError as problem:
        raise errors.BadObject("Pod", pod.full_name, f"metadata.annotations[{NAME}]", f"{problem}; left out") from None


def _choices(sets: Sequence[Zones]) -> str:
    return "|".join(grammar.zones(sum(1 << zone for zone in each)) for each in sets)


def _container(part: str) -> tuple[str, tuple[Zones, ...]]:
    name, equals, choices = part.partition("=")
    if not equals:
        raise grammar.AttributeTextError(f"{errors.echo(part)} is not container=zones")
    return grammar.from_word(name), tuple(_zones(choice) for choice in choices.split("|"))


def _zones(text: str) -> Zones:
    mask = grammar.from_zones(text)
    return tuple(zone for zone in range(mask.bit_length()) if mask >> zone & 1)
