"""Objects with random damage: admission says yes, or no in words, and never breaks."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.simulator import trees
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.storage.errors import StatusError
from tests.unit.simulator.apiserver.admission import recorded

OBJECTS = [written for written, _ in recorded.load("defaults").values()]
UPDATES = [(old, new) for old, new, _ in recorded.load("refused_updates").values()]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**33), 2**33),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from([[], {}, [{}], ["x"], [None], {"a": None}, {"a": "b"}, "-1", "1Gi", "a/b", "None", "25%"]),
)


def places(thing: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of every object and every index of every list, with what holds it."""
    keys = thing.keys() if isinstance(thing, dict) else range(len(thing)) if isinstance(thing, list) else ()
    for key in list(keys):
        yield thing, key
        yield from places(thing[key])


def damage(draw: st.DrawFn, tree: Any) -> None:
    wounds = [place for place in places(tree) if place[1] not in ("kind", "apiVersion")]
    holder, key = draw(st.sampled_from(wounds or [(tree, "spec")]))
    if draw(st.booleans()) or isinstance(holder, list):
        holder[key] = json.loads(json.dumps(draw(VALUES)))
    else:
        holder.pop(key, None)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Any, Any]:
    """An object with one or two wounds outside its metadata, and the one before it if it is an update."""
    old, new = draw(st.sampled_from([*((None, each) for each in OBJECTS), *UPDATES]))
    new = trees.copied(new)
    inside = {key: value for key, value in new.items() if key != "metadata"}
    for _ in range(draw(st.integers(1, 2))):
        damage(draw, inside)
    return old, inside | {"metadata": new["metadata"]}


@settings(max_examples=300)
@given(damaged())
def test_no_object_breaks_admission(case: tuple[Any, Any]) -> None:
    old, new = case
    resource = recorded.KINDS[new["apiVersion"], new["kind"]]
    with contextlib.suppress(StatusError):
        tree = admission.prepare(resource, recorded.arrived(new), old, recorded.THERE)
        assert isinstance(admission.errors(resource, tree, old), list)
