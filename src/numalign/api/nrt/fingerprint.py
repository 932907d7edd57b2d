"""The pod-set fingerprint v001: identifies the pods of a topology report in 24 characters.

The agent computes it over the pods it sees, the scheduler over the pods it knows; equal texts mean that the report is
current. The algorithm is upstream's (exporter spec 7, scheduler plugin spec 14), on XXH64. A pod is its namespace and
name, so a pod that was deleted and created again is the same. The method decides which pods take part; `included`
applies it to pods whose exclusiveness the caller determined."""

import re
import struct
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import xxhash

from numalign.api import errors

PREFIX: Final = "pfp0"
VERSION: Final = "v001"
SHORTEST: Final = 16
"""Upstream's minimum length; a complete fingerprint has 24 characters."""

HASH: Final = re.compile(r"[0-9a-f]{16}")

Pod = tuple[str, str]
"""Namespace and name."""


class Method(StrEnum):
    """Which pods the fingerprint covers; a report without a method means ALL."""

    ALL = "all"
    EXCLUSIVE = "with-exclusive-resources"


class FingerprintDefect(StrEnum):
    """Why a fingerprint was not accepted."""

    MALFORMED = "malformed"
    INCOMPATIBLE_VERSION = "incompatible-version"
    MISMATCH = "mismatch"


class FingerprintError(ValueError):
    """The text is no v001 fingerprint, or not the one of these pods."""

    def __init__(self, reason: FingerprintDefect, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class PodSet:
    """A changing set of pods and its fingerprint. A pod added twice counts twice, as upstream."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._hashes = sorted(pod_hash(namespace, name) for namespace, name in pods)

    def add(self, namespace: str, name: str) -> None:
        insort(self._hashes, pod_hash(namespace, name))

    def remove(self, namespace: str, name: str) -> None:
        """Removes one occurrence of the pod; KeyError if there is none."""
        wanted = pod_hash(namespace, name)
        place = bisect_left(self._hashes, wanted)
        if place == len(self._hashes) or self._hashes[place] != wanted:
            raise KeyError((namespace, name))
        del self._hashes[place]

    def fingerprint(self) -> str:
        return of_hashes(self._hashes)


def of_hashes(hashes: Sequence[int]) -> str:
    """The fingerprint of pods by their `pod_hash`es, ascending."""
    packed = struct.pack(f"<{len(hashes)}Q", *hashes)
    return f"{PREFIX}{VERSION}{xxhash.xxh64_intdigest(packed):016x}"


def of(pods: Iterable[Pod]) -> str:
    """The fingerprint of these pods, in any order."""
    return PodSet(pods).fingerprint()


def pod_hash(namespace: str, name: str) -> int:
    seed = xxhash.xxh64_intdigest(_bytes(namespace), seed=0)
    return xxhash.xxh64_intdigest(_bytes(name), seed=seed)


def included(pods: Iterable[tuple[Pod, bool]], method: Method) -> list[Pod]:
    """The pods that this method covers; each comes with whether it holds exclusive resources."""
    return [pod for pod, exclusive in pods if exclusive or method is Method.ALL]


def parse(text: str) -> int:
    """The 64-bit hash in a well-formed fingerprint."""
    digits = _after_header(text)
    if HASH.fullmatch(digits) is None:
        raise FingerprintError(
            FingerprintDefect.MALFORMED, f"{errors.echo(text)} does not end in 16 lower-case hex digits"
        )
    return int(digits, 16)


def check(text: str, pods: Iterable[Pod]) -> None:
    """Raises unless the text is the fingerprint of these pods; the reasons are upstream's, in upstream's order."""
    expected = of(pods)
    if _after_header(text) != _after_header(expected):
        raise FingerprintError(
            FingerprintDefect.MISMATCH, f"{errors.echo(text)} is not {expected}, the fingerprint of these pods"
        )


def _after_header(text: str) -> str:
    if len(text) < SHORTEST or not text.startswith(PREFIX):
        raise FingerprintError(
            FingerprintDefect.MALFORMED, f"{errors.echo(text)} is not {PREFIX}, a version and 16 hex digits"
        )
    version = text[len(PREFIX) : len(PREFIX + VERSION)]
    if version != VERSION:
        raise FingerprintError(
            FingerprintDefect.INCOMPATIBLE_VERSION, f"{errors.echo(version)} is not the version {VERSION}"
        )
    return text[len(PREFIX + VERSION) :]


def _bytes(text: str) -> bytes:
    # A lone surrogate cannot come from JSON, but must not end the process when a caller made one.
    return text.encode("utf-8", "surrogatepass")
