"""Whatever arrives is read or refused in words: no crash, no other error, and the field is named."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from numalign.api import errors
from numalign.api.decode import cpuset, decode, quantity
from numalign.api.objects import node, pod
from tests.strategies import hostile

TEMPLATES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "pods": (pod.Pod, hostile.POD),
    "nodes": (node.Node, hostile.NODE),
}
of_each_kind = pytest.mark.parametrize("kind, template", TEMPLATES.values(), ids=TEMPLATES)
# Eight families below: 1,200 inputs in every run, 80,000 in the campaign.
of_each_size = pytest.mark.parametrize("count", [150, pytest.param(10_000, id="campaign", marks=pytest.mark.slow)])


def refusals(ask: Callable[[Any], object], inputs: Iterable[Any], kind: type[Exception]) -> list[Any]:
    """The errors of the one allowed kind; any other fails the test. Input that nothing refuses would prove little."""
    tried, refused = 0, []
    for tried, raw in enumerate(inputs, start=1):  # noqa: B007
        try:
            ask(raw)
        except kind as refusal:
            refused.append(refusal)
    print(f"{tried:,} inputs, {len(refused):,} refused")
    assert len(refused) > tried // 4
    return refused


@of_each_size
def test_quantities(count: int) -> None:
    inputs = hostile.texts(hostile.QUANTITIES, count, seed=1)
    refused = refusals(quantity.parse, inputs, quantity.QuantityError)
    assert all(quantity.HELP in str(refusal) and len(str(refusal)) < 1200 for refusal in refused)


@of_each_size
def test_cpusets(count: int) -> None:
    inputs = hostile.texts(hostile.CPUSETS, count, seed=2)
    refused = refusals(cpuset.parse, inputs, cpuset.CPUSetError)
    assert all("CPU id" in str(refusal) and len(str(refusal)) < 1200 for refusal in refused)


def assert_named(refusal: errors.BadObject) -> None:
    assert refusal.field.partition(".")[0].partition("[")[0] in ("metadata", "spec", "status")
    assert refusal.field in str(refusal)
    assert str(refusal).isprintable()
    assert len(str(refusal)) < 2000


@of_each_size
@of_each_kind
def test_json_with_broken_parts(kind: type[Any], template: dict[str, Any], count: int) -> None:
    inputs = hostile.objects(template, count, seed=3, absurd=hostile.ABSURD)
    texts = (json.dumps(raw).encode() for raw in inputs)
    for refusal in refusals(lambda raw: decode.decode(kind, raw), texts, errors.BadObject):
        assert_named(refusal)


@of_each_size
@of_each_kind
def test_mappings_with_broken_parts(kind: type[Any], template: dict[str, Any], count: int) -> None:
    inputs = hostile.objects(template, count, seed=4, absurd=hostile.ABSURD + hostile.UNWRITABLE)
    for refusal in refusals(lambda raw: decode.decode(kind, raw), inputs, errors.BadObject):
        assert_named(refusal)


@of_each_size
@of_each_kind
def test_garbled_bytes(kind: type[Any], template: dict[str, Any], count: int) -> None:
    inputs = hostile.garbled(json.dumps(template).encode(), count, seed=5)
    for refusal in refusals(lambda raw: decode.decode(kind, raw), inputs, errors.BadObject):
        assert str(refusal).startswith(kind.__name__)
        assert len(str(refusal)) < 2000
