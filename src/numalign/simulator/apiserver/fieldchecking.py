"""Fields that a kind does not have, where a client asked to be told of them (`fieldValidation`).

kubectl asks for Strict on every apply and create. Without being asked nothing is checked: a field that nobody knows is
carried along, where the real server warns of it and drops it. Fields given twice are not noticed."""

from numalign.simulator.apiserver import refusals
from numalign.simulator.apiserver.calls import Call
from numalign.simulator.apiserver.resources import Resource
from numalign.simulator.apiserver.schemas import builtin, fieldchecks
from numalign.simulator.apiserver.state import State
from numalign.simulator.trees import Tree


def warnings(state: State, call: Call, resource: Resource, tree: Tree) -> list[str]:
    """Sentences for the Warning headers; raises StatusError 400 where Strict was asked for and a field is unknown."""
    wish = call.query.get("fieldValidation", "") if call.query else ""
    if wish not in ("Strict", "Warn"):
        return []
    found = [f'unknown field "{path}"' for path in _unknown(state, resource, tree)]
    if found and wish == "Strict":
        kind, listed = resource.kind, ", ".join(found)
        if resource.custom:
            raise refusals.bad_request(f"strict decoding error: {listed}")
        raise refusals.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: strict decoding error: {listed}'
        )
    return found


def _unknown(state: State, resource: Resource, tree: Tree) -> list[str]:
    custom = state.registry.custom(resource)
    if custom is not None:
        shape = custom.schema.shape if custom.schema is not None else None
    else:
        shape = builtin.fields((resource.group, resource.version, resource.kind))
    return list(fieldchecks.unknown(tree, shape)) if shape is not None else []
