"""Files into structs; a field that no reader knows is refused."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.objects.pod import Affinity
from numalign.api.schedulerconfig import pluginargs

TERMS = "podAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def field(value: Any) -> Field:
    return fields.root({"here": value}, "Thing", "file").at("here")


def test_a_struct_is_read_with_its_defaults() -> None:
    assert pluginargs.read_strictly(field(None), Affinity) == Affinity()
    near = pluginargs.read_strictly(field({"podAffinity": {}}), Affinity).pod_affinity
    assert near is not None
    assert near.required == ()


@pytest.mark.parametrize(
    "value, path",
    [
        ({"podAfinity": {}}, "here.podAfinity"),
        ({"podAffinity": {"required": []}}, "here.podAffinity.required"),
        ({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}, {"key": 1}]}}, f"here.{TERMS}[1].key"),
        ({"podAffinity": 3}, "here.podAffinity"),
        ({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}, f"here.{TERMS}"),
        ([], "here"),
    ],
    ids=["misspelt", "deeper", "in a list", "not a mapping", "not a list", "not a mapping at all"],
)
def test_what_does_not_belong_there_is_refused_where_it_is(value: Any, path: str) -> None:
    with pytest.raises(errors.BadObject) as raised:
        pluginargs.read_strictly(field(value), Affinity)
    assert (raised.value.kind, raised.value.name, raised.value.field) == ("Thing", "file", path)


def test_keys_that_are_the_users_own_are_free() -> None:
    selector = {"labelSelector": {"matchLabels": {"anything": "goes"}}}
    read = pluginargs.read_strictly(field({"podAffinity": {TERMS.partition(".")[2]: [selector]}}), Affinity)
    assert read.pod_affinity is not None
    assert read.pod_affinity.required[0].label_selector is not None


def test_a_wrong_type_is_refused_where_it_is() -> None:
    with pytest.raises(errors.BadObject, match=r"here\.podAffinity.*\[0\]\.topologyKey: expected a string"):
        pluginargs.read_strictly(field({"podAffinity": {TERMS.partition(".")[2]: [{"topologyKey": 3}]}}), Affinity)
