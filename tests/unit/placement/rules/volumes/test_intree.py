"""Volumes of built-in plugins in the words of the CSI drivers that serve them."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.pod import NodeSelector, Volume
from numalign.placement.rules.volumes import intree
from tests.unit.placement.rules.stores import ZONE, volume

OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
REGION = "topology.kubernetes.io/region"
GCE: dict[str, Any] = {"gcePersistentDisk": {"pdName": "d"}}
AWS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}

HANDLES: dict[str, tuple[dict[str, Any], dict[str, str], str | None]] = {
    "aws": (AWS, {}, "vol-1"),
    "aws by address": ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}}, {}, "vol-2"),
    "aws by address without a zone": ({"awsElasticBlockStore": {"volumeID": "aws:///vol-2"}}, {}, "vol-2"),
    "aws by a bad address": ({"awsElasticBlockStore": {"volumeID": "aws://x/y/vol-2"}}, {}, None),
    "gce anywhere": (GCE, {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
    "gce in a zone": (GCE, {ZONE: "us-east1-b"}, "projects/UNSPECIFIED/zones/us-east1-b/disks/d"),
    "gce in two": (GCE, {OLD_ZONE: "us-east1-b__us-east1-c"}, "projects/UNSPECIFIED/regions/us-east1/disks/d"),
    "gce in two regions": (GCE, {ZONE: "us-east1-b__us-west1-c"}, None),
    "cinder": ({"cinder": {"volumeID": "x"}}, {}, "x"),
    "azure": ({"azureDisk": {"diskName": "n", "diskURI": "/d"}}, {}, "/d"),
    "portworx": ({"portworxVolume": {"volumeID": "p"}}, {}, "p"),
    "not built in": ({"csi": {"driver": "x", "volumeHandle": "h"}}, {}, None),
}


@pytest.mark.parametrize("source, labels, expected", HANDLES.values(), ids=HANDLES)
def test_drivers_know_volumes_by_their_handle(source: dict[str, Any], labels: dict[str, str], expected: Any) -> None:
    assert intree.handle(volume("v", **source).spec, labels) == expected


KINDS = {
    "counted": ({"name": "v", **AWS}, True, True),
    "azure files": ({"name": "v", "azureFile": {"shareName": "s"}}, False, True),
    "vsphere": ({"name": "v", "vsphereVolume": {"volumePath": "p"}}, False, True),
    "a directory": ({"name": "v", "emptyDir": {}}, False, False),
}


@pytest.mark.parametrize("written, counted, built_in", KINDS.values(), ids=KINDS)
def test_some_plugins_are_built_in_but_not_counted(written: dict[str, Any], counted: bool, built_in: bool) -> None:
    read = decode.decode(Volume, written)
    assert ((intree.plugin_of(read) is not None), intree.is_built_in(read)) == (counted, built_in)


def selector(*terms: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
            for term in terms
        ]
    }


EBS_ZONE = "topology.ebs.csi.aws.com/zone"
REACH: dict[str, tuple[dict[str, Any] | None, dict[str, str], dict[str, Any] | None]] = {
    "nothing said": (None, {}, None),
    "zone by affinity": (selector({ZONE: ["a"]}), {}, selector({EBS_ZONE: ["a"]})),
    "old zone and region": (
        selector({OLD_ZONE: ["a"], OLD_REGION: ["r"]}),
        {},
        selector({EBS_ZONE: ["a"], REGION: ["r"]}),
    ),
    "zone by label": (None, {ZONE: "b__a"}, selector({EBS_ZONE: ["a", "b"]})),
    "zone by label, beside an affinity": (
        selector({"disk": ["x"]}, {"disk": ["y"]}),
        {OLD_ZONE: "a"},
        selector({"disk": ["x"], EBS_ZONE: ["a"]}, {"disk": ["y"], EBS_ZONE: ["a"]}),
    ),
    "affinity before label": (selector({ZONE: ["a"]}), {ZONE: "b"}, selector({EBS_ZONE: ["a"]})),
    "an empty label": (None, {ZONE: ""}, None),
}


@pytest.mark.parametrize("written, labels, expected", REACH.values(), ids=REACH)
def test_zones_are_looked_for_under_the_drivers_label(written: Any, labels: dict[str, str], expected: Any) -> None:
    affinity: dict[str, Any] = {} if written is None else {"nodeAffinity": {"required": written}}
    disk = volume("v", metadata={"labels": labels}, **AWS, **affinity)
    assert intree.affinity(disk, intree.AWS) == (expected and decode.decode(NodeSelector, expected))


def test_some_drivers_leave_zones_as_they_are() -> None:
    written: dict[str, Any] = {"nodeAffinity": {"required": selector({ZONE: ["a"]})}}
    disk = volume("v", azureDisk={"diskURI": "/d"}, **written)
    assert intree.affinity(disk, intree.AZURE) == disk.spec.node_affinity.required
