"""The NUMA alignment that a pod's owner requests in annotations: scope and strictness, and those of direct mode.

The scheduler's intake calls `intent`; docs/concepts/attributes.md describes the values. For a pod without the
annotations, the node's policy and scope decide. An unknown value is a BadObject that names the annotation, because a
typing error must not silently drop a requirement."""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import directspec
from numalign.api.attributes.directspec import NOTHING, DirectSpec
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod

SCOPE: Final = "numalign.io/scope"
STRICTNESS: Final = "numalign.io/strictness"

WISHES: Final = (SCOPE, STRICTNESS, *directspec.SPECS)

Scope = Literal["container", "pod"]
Strictness = Literal["require", "prefer", "none"]

SCOPES: Final[Mapping[str, Scope]] = {"container": "container", "pod": "pod"}
STRICTNESSES: Final[Mapping[str, Strictness]] = {"require": "require", "prefer": "prefer", "none": "none"}

T = TypeVar("T")


class Intent(Struct, frozen=True, kw_only=True):
    """None: the pod does not set it."""

    scope: Scope | None = None
    strictness: Strictness | None = None
    direct: DirectSpec = NOTHING
    """What it asks of nodes in direct mode."""


def intent(pod: Pod, *, koordinator: bool = False) -> Intent:
    """The intent in the annotations of this pod. `koordinator`: Koordinator's annotations are read, too."""
    meta = pod.metadata
    return Intent(
        scope=_word(meta, SCOPE, SCOPES),
        strictness=_word(meta, STRICTNESS, STRICTNESSES),
        direct=directspec.read(pod, koordinator=koordinator),
    )


def _word(pod: ObjectMeta, annotation: str, known: Mapping[str, T]) -> T | None:
    written = pod.annotations.get(annotation)
    if written is None:
        return None
    if written not in known:
        why = f"{errors.echo(written)} is not one of {', '.join(known)}; write one of them or remove the annotation"
        raise errors.BadObject("Pod", pod.full_name, f"metadata.annotations[{annotation}]", why)
    return known[written]
