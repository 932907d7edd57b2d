"""Storage objects read as the API server writes them."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode, quantity
from numalign.api.objects.volumes import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


def claim(annotations: dict[str, str] | None = None, **spec: Any) -> PersistentVolumeClaim:
    return decode.decode(PersistentVolumeClaim, {"metadata": {"annotations": annotations or {}}, "spec": spec})


BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


@pytest.mark.parametrize(
    "annotations, spec, is_bound",
    [(BOUND, {"volumeName": "v"}, True), ({}, {"volumeName": "v"}, False), (BOUND, {}, False)],
    ids=["both", "not completed", "no volume"],
)
def test_a_claim_is_bound_once_the_controller_has_completed_the_binding(
    annotations: dict[str, str], spec: dict[str, Any], is_bound: bool
) -> None:
    assert claim(annotations, **spec).is_bound is is_bound


def test_the_old_annotation_for_the_class_wins() -> None:
    old = {"volume.beta.kubernetes.io/storage-class": "old"}
    assert claim(old, storageClassName="new").class_name == "old"
    written = {"metadata": {"annotations": old}, "spec": {"storageClassName": "new"}}
    assert decode.decode(PersistentVolume, written).class_name == "old"


def test_sizes_are_quantities_and_may_be_absent() -> None:
    assert claim(resources={"requests": {"storage": "5Gi"}}).size == quantity.parse("5Gi")
    assert (claim().size, decode.decode(PersistentVolume, {}).size) == (None, None)


def test_a_raw_volume_keeps_what_decides_where_it_is() -> None:
    spec = {
        "claimRef": {"namespace": "ns", "name": "c", "uid": "u"},
        "nodeAffinity": {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
        },
        "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"x": "y"}},
    }
    read = decode.decode(PersistentVolume, {"spec": spec}).spec
    assert read.claim_ref is not None
    assert (read.claim_ref.uid, read.csi and read.csi.volume_handle, read.volume_mode) == ("u", "h", "Filesystem")
    assert read.node_affinity.required is not None


def test_migrated_plugins_are_a_list_in_an_annotation() -> None:
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "a,b"}
    assert decode.decode(CSINode, {"metadata": {"annotations": annotations}}).migrated_plugins == {"a", "b"}
    assert decode.decode(CSINode, {}).migrated_plugins == frozenset()


@pytest.mark.parametrize(
    "written, largest", [({"capacity": "9Gi"}, "9Gi"), ({"capacity": "9Gi", "maximumVolumeSize": "2Gi"}, "2Gi")]
)
def test_the_largest_volume_is_the_maximum_size_or_the_capacity(written: dict[str, str], largest: str) -> None:
    assert decode.decode(CSIStorageCapacity, written).largest_volume == quantity.parse(largest)


def test_fields_with_several_capitals_are_read() -> None:
    drivers = [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}]
    assert decode.decode(CSINode, {"spec": {"drivers": drivers}}).spec.drivers[0].allocatable.count == 3
    topologies = [{"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}]
    read = decode.decode(StorageClass, {"allowedTopologies": topologies, "volumeBindingMode": "Immediate"})
    assert read.allowed_topologies[0].match_label_expressions[0].values == ("v",)
    spec = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    assert decode.decode(VolumeAttachment, {"spec": spec}).spec.source.persistent_volume_name == "v"
