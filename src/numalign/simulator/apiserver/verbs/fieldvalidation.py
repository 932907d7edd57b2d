"""Fields that a kind does not have, where a client asked to be told of them (`fieldValidation`).

kubectl asks for Strict on every apply and create. Without being asked nothing is checked: a field that nobody knows is
carried along, where the real server warns of it and drops it, and of fields given twice the last counts."""

import json
from collections.abc import Iterator
from typing import Any

from numalign.simulator.apiserver.http.calls import Call
from numalign.simulator.apiserver.schemas import builtin, fieldchecks
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.trees import Tree


def warnings(state: State, call: Call, resource: Resource, tree: Tree) -> list[str]:
    """Sentences for the Warning headers; raises StatusError 400 where Strict was asked for and a field is unknown."""
    wish = call.query.get("fieldValidation", "") if call.query else ""
    if wish not in ("Strict", "Warn"):
        return []
    found = [f'duplicate field "{path}"' for path in _twice(call.body)]
    found += [f'unknown field "{path}"' for path in _unknown(state, resource, tree)]
    if found and wish == "Strict":
        kind, listed = resource.kind, ", ".join(found)
        raise errors.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: strict decoding error: {listed}'
        )
    return found


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, with all that it says."""


def _twice(body: bytes) -> list[str]:
    """Paths of fields that are given more than once; only JSON is looked at."""
    if body[:1] != b"{":
        return []
    try:
        return list(_repeated(json.loads(body, object_pairs_hook=_Pairs), ""))
    except ValueError:
        return []


def _repeated(thing: Any, path: str) -> Iterator[str]:
    if isinstance(thing, _Pairs):
        seen = set[str]()
        for key, value in thing:
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _repeated(value, here)
    elif isinstance(thing, list):
        for index, value in enumerate(thing):
            yield from _repeated(value, f"{path}[{index}]")


def _unknown(state: State, resource: Resource, tree: Tree) -> list[str]:
    schema = state.registry.schema(resource)
    shape = builtin.fields(resource.gvk) if schema is None else schema.shape
    return list(fieldchecks.unknown(tree, shape)) if shape is not None else []
