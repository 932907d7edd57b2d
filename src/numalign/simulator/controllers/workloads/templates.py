"""Pod templates: whether two are the same, and the short hash that names one.

Deployments and daemon sets tell old pods from new ones by it. The hash is our own: the real one is made of the memory
of a Go struct; it only has to be short, stable and fit for a label."""

import zlib
from typing import Final

import msgspec

from numalign.simulator.trees import Tree

HASH_LABEL: Final = "pod-template-hash"
SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no hash is ever a word."""


def digest(template: Tree, collisions: int = 0) -> str:
    written = msgspec.json.encode([unhashed(template), collisions], order="deterministic")
    return "".join(SAFE[ord(digit) % len(SAFE)] for digit in str(zlib.crc32(written)))


def same(left: Tree, right: Tree) -> bool:
    return unhashed(left) == unhashed(right)


def hashed(template: Tree, digest: str, label: str = HASH_LABEL) -> Tree:
    metadata = template.get("metadata") or {}
    return template | {"metadata": metadata | {"labels": (metadata.get("labels") or {}) | {label: digest}}}


def unhashed(template: Tree) -> Tree:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    # The API fills this in or not; it never means anything in a template.
    rest = {key: value for key, value in metadata.items() if key not in ("labels", "creationTimestamp")}
    return template | {"metadata": rest | ({"labels": labels} if labels else {})}
