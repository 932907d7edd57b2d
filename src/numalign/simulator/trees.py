"""API objects as decoded JSON.

An API server must keep fields that it does not know, so the simulator uses trees instead of structs. A tree belongs to
its receiver, unless the function says READ ONLY."""

from typing import Any, TypeVar

import msgspec

Tree = dict[str, Any]
T = TypeVar("T")

ENCODER = msgspec.json.Encoder()
DECODER = msgspec.json.Decoder()


def encoded(tree: Any) -> bytes:
    return ENCODER.encode(tree)


def decoded(data: bytes) -> Tree:
    """Decodes bytes that hold a JSON object."""
    tree: Tree = DECODER.decode(data)
    return tree


def copied(value: T) -> T:
    """A deep copy by way of JSON, which is several times faster than copying recursively."""
    copy: T = DECODER.decode(ENCODER.encode(value))
    return copy


def at(tree: Tree, *path: str) -> Any:
    """The value at the path; None if the path does not exist."""
    found: Any = tree
    for step in path:
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    return found


def metadata(tree: Tree) -> Tree:
    """The metadata of an object, never None; not a copy unless it is missing."""
    found = tree.get("metadata")
    return found if isinstance(found, dict) else {}


def text(tree: Tree, *path: str) -> str:
    """The string at the path, or an empty string."""
    found = at(tree, *path)
    return found if isinstance(found, str) else ""
