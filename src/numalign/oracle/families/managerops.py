"""Operations on a single manager in the recordings of `device_hints` and `mem_static`."""

from __future__ import annotations

from msgspec import Struct

from numalign.oracle.families.encodings import Hint


class Op(Struct, frozen=True, kw_only=True, tag_field="op"):
    pod: str


class PodHints(Op, frozen=True, kw_only=True, tag="pod_hints"):
    pass


class ContainerHints(Op, frozen=True, kw_only=True, tag="hints"):
    container: str


class Allocate(Op, frozen=True, kw_only=True, tag="allocate"):
    container: str
    affinity: Hint
