"""Reports on the wire: either version, in one pass or piece by piece, and a clear refusal of anything else."""

import json
from typing import Any

import pytest

from numalign.api.decode import structs
from numalign.api.errors import BadObject
from numalign.api.nrt import wire
from numalign.api.nrt.wire import Attribute, Cost, NodeResourceTopology, PublishedZone, Resource, Salvaged
from numalign.api.objects.meta import ObjectMeta

REPORT: dict[str, Any] = {
    "apiVersion": "topology.node.k8s.io/v1alpha2",
    "kind": "NodeResourceTopology",
    "metadata": {"name": "worker-7", "managedFields": [{"manager": "rte"}]},
    "topologyPolicies": ["RestrictedPodLevel"],
    "zones": [
        {
            "name": "node-0",
            "type": "Node",
            "parent": "socket-0",
            "costs": [{"name": "node-0", "value": 10}],
            "attributes": [{"name": "a", "value": ""}],
            "resources": [{"name": "cpu", "capacity": "8", "allocatable": 8, "available": 7.5}],
        }
    ],
    "attributes": [{"name": "topologyManagerPolicy", "value": "restricted"}],
}
STRUCT = NodeResourceTopology(
    api_version="topology.node.k8s.io/v1alpha2",
    kind="NodeResourceTopology",
    metadata=ObjectMeta(name="worker-7"),
    topology_policies=("RestrictedPodLevel",),
    zones=(
        PublishedZone(
            name="node-0",
            type="Node",
            parent="socket-0",
            costs=(Cost(name="node-0", value=10),),
            attributes=(Attribute(name="a"),),
            resources=(Resource(name="cpu", capacity="8", allocatable=8, available=7.5),),
        ),
    ),
    attributes=(Attribute(name="topologyManagerPolicy", value="restricted"),),
)
REFUSED: dict[str, tuple[Any, str]] = {
    "not JSON": (b"{", ""),
    "not UTF-8": (b'{"metadata":"\xff"}', "metadata"),
    "a list": (b"[]", ""),
    "no name": ({"zones": []}, "metadata.name"),
    "a name that is no text": ({"metadata": {"name": 5}}, "metadata.name"),
    "metadata that is no object": ({"metadata": "worker-7"}, "metadata.name"),
    "another kind": (REPORT | {"kind": "Pod"}, "kind"),
    "another group": (REPORT | {"apiVersion": "v1"}, "apiVersion"),
    "nested too deeply": (b'{"x":' + b"[" * 9999 + b"]" * 9999 + b"}", ""),
}


@pytest.mark.parametrize(
    "raw", [REPORT, json.dumps(REPORT), json.dumps(REPORT).encode()], ids=["mapping", "str", "bytes"]
)
def test_a_report_is_read_from_bytes_or_a_mapping(raw: Any) -> None:
    assert wire.decode(raw) == STRUCT


def test_required_fields_are_written_even_if_empty() -> None:
    report = NodeResourceTopology(metadata=ObjectMeta(name="n"), zones=(), attributes=(Attribute(name="a"),))
    assert json.loads(structs.encode(report)) == {
        "metadata": {"name": "n"},
        "zones": [],
        "attributes": [{"name": "a", "value": ""}],
    }


def test_a_malformed_zone_is_skipped_and_noted() -> None:
    report = wire.decode(REPORT | {"zones": [{"name": 3, "type": "Node"}, *REPORT["zones"]]})
    assert isinstance(report, Salvaged)
    assert report.zones == (PublishedZone(type="Node"), *(STRUCT.zones or ()))
    assert [guess.field for guess in report.dropped] == ["zones[0].name"]


def test_a_number_too_large_for_any_float_costs_only_itself() -> None:
    raw = json.dumps(REPORT).replace('"8"', "1e999").encode()
    zones = wire.decode(raw).zones or ()
    assert zones[0].resources[0].capacity == float("inf")


def test_nulls_are_absent_fields() -> None:
    report = wire.decode(b'{"metadata":{"name":"n","labels":null},"zones":null,"attributes":null}')
    assert report == NodeResourceTopology(metadata=ObjectMeta(name="n"))


@pytest.mark.parametrize("raw, field", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_a_bad_object(raw: Any, field: str) -> None:
    with pytest.raises(BadObject) as problem:
        wire.decode(raw)
    assert (problem.value.kind, problem.value.field) == ("NodeResourceTopology", field)
