"""Catalogues of machine types: what is read, and what contradicts itself."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from numalign.api.decode import yamltext
from numalign.api.errors import BadObject
from numalign.kube.resources import NODES
from numalign.plan.sources import scenes
from tests.unit.plan.plannedclusters import catalogue_of, machine_type


def test_a_type_has_a_kubelet_a_price_and_a_count() -> None:
    found = catalogue_of(machine_type(price=1.25, count=3, kubeletVersion="v1.36.2", labels={"pool": "a"}))
    (only,) = found.types
    assert (only.price, only.count, only.labels) == (Decimal("1.25"), 3, {"pool": "a"})
    assert only.kubelet.settings.topology_policy == "restricted"
    assert str(only.kubelet.settings.minor) == "1.36"
    assert found.is_priced


def test_a_machine_may_be_described_in_the_catalogue() -> None:
    found = catalogue_of(
        machine_type(machine={"name": "own", "extends": "2x16", "devices": {"example.com/nic": {"0": 2}}})
    )
    assert len(found.types[0].kubelet.machine.devices["example.com/nic"].devices) == 2


def test_a_cluster_of_a_catalogue_has_as_many_machines_as_it_counts() -> None:
    made = scenes.of_catalogue(catalogue_of(machine_type("a", count=2), machine_type("b")), "machines.yaml")
    nodes = made.every(NODES)
    assert [node.metadata.name for node in nodes] == ["a-0", "a-1"]
    assert nodes[0].metadata.labels["node.kubernetes.io/instance-type"] == "a"
    with pytest.raises(BadObject, match="no machine type has a count above 0"):
        scenes.of_catalogue(catalogue_of(machine_type()), "machines.yaml")


@pytest.mark.parametrize(
    "types, field, why",
    [
        ([machine_type(), machine_type()], "machines[1].name", "also the name of machines[0]"),
        ([machine_type("a", price=1), machine_type("b")], "machines[1].price", "a has a price and b has none"),
        ([machine_type(price=-1)], "machines[0].price", "is not between 0"),
        ([machine_type(price="dear")], "machines[0].price", "is not a price"),
        ([machine_type(price=float("nan"))], "machines[0].price", "is not between 0"),
        ([machine_type(count=-1)], "machines[0].count", "is not between 0"),
        ([machine_type(machine="2x17")], "machines[0].machine", "unknown"),
        ([machine_type(machine={"name": "own", "zones": []})], "machines[0].machine.zones", "one zone or more"),
        ([machine_type() | {"kubelet": {"cpuManagerPolicy": "static"}}], "machines[0].kubelet", "would not start"),
        ([machine_type() | {"kubelet": {"maxPods": -1}}], "machines[0].kubelet.maxPods", "is not between"),
        ([machine_type(kubeletVersion="new")], "machines[0].kubeletVersion", "is not a Kubernetes version"),
        ([machine_type(prise=1)], "machines[0].prise", "did you mean price?"),
        ([machine_type("")], "machines[0].name", "is empty"),
        ([], "machines", "one machine type or more"),
    ],
)
def test_what_is_wrong_names_the_field(types: list[dict[str, Any]], field: str, why: str) -> None:
    with pytest.raises(BadObject) as caught:
        catalogue_of(*types)
    assert (caught.value.kind, caught.value.name, caught.value.field) == ("MachineCatalogue", "machines.yaml", field)
    assert why in caught.value.why


def test_the_defaults_of_a_kubelet_are_those_of_the_kubelet() -> None:
    found = catalogue_of({"name": "plain", "machine": "2x16"})
    assert found.types[0].kubelet.settings.topology_policy == "none"


@pytest.mark.parametrize(
    "path, line",
    [
        ("", 1),
        ("machines", 2),
        ("machines[1].price", 5),
        ("machines[1].none", 4),
        ("machines[0].labels[a/b.c]", 3),
        ("x", 1),
    ],
)
def test_the_line_of_a_field_is_found_by_its_path(path: str, line: int) -> None:
    text = "kind: A\nmachines:\n- {name: a, labels: {a/b.c: d}}\n- name: b\n  price: 1\n"
    assert yamltext.line(text, path) == line
