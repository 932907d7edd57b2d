"""The placement that travels with a binding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.scheduler import placementannotation

ZONE_SETS = st.lists(st.sets(st.integers(0, 63), min_size=1).map(lambda each: tuple(sorted(each))), min_size=1)


def pod(text: str) -> ObjectMeta:
    return ObjectMeta(name="p", namespace="default", annotations={placementannotation.NAME: text})


def test_a_container_with_one_zone_and_one_with_a_choice() -> None:
    assert (
        placementannotation.encode({"main": [(0,)], "side": [(0, 1), (2, 3)], "plain": []}) == "v1;main=0;side=0-1|2-3"
    )


@given(st.dictionaries(st.text("abc-.=;|", min_size=1), ZONE_SETS))
def test_what_is_written_is_read_back(possible: dict[str, list[tuple[int, ...]]]) -> None:
    written = placementannotation.encode(possible)
    assert placementannotation.decode(pod(written)) == {name: tuple(sets) for name, sets in possible.items()}


def test_a_pod_without_one_or_with_a_newer_one_says_nothing() -> None:
    assert placementannotation.decode(ObjectMeta()) is None
    assert placementannotation.decode(pod("v2;whatever")) is None


@pytest.mark.parametrize("text", ["main=0", "v1;main", "v1;main=x", "v1;a=0;a=1", "v1;=0"])
def test_a_broken_one_names_the_annotation(text: str) -> None:
    with pytest.raises(BadObject, match=r"Pod default/p, metadata.annotations\[numalign.io/placement\]: "):
        placementannotation.decode(pod(text))
