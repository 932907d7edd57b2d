"""Made-up clusters and pods for the stock scheduler: repeatable, rich in what can happen, small when they must be."""

import functools
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from numalign.oracle.harness import shrink
from numalign.oracle.kubescheduler import answer
from numalign.oracle.kubescheduler.generate import cases
from numalign.oracle.kubescheduler.generate.pods import FEATURES, FeatureRates

KINDS = {
    *("nodes", "pods", "namespaces", "services", "replicaSets", "statefulSets", "replicationControllers"),
    *("persistentVolumes", "persistentVolumeClaims", "storageClasses", "csiNodes", "csiDrivers"),
    *("csiStorageCapacities", "volumeAttachments", "deviceClasses"),
}
SPEC = {
    *("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations", "volumes", "nodeName", "priority"),
    *("containers", "initContainers", "overhead", "resources", "hostNetwork", "hostUsers", "resourceClaims"),
}
VOLUMES = {
    *("persistentVolumeClaim", "ephemeral", "image", "emptyDir", "csi"),
    *("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"),
}


@functools.cache
def drawn() -> list[dict[str, Any]]:
    return [cases.draw(3, number)[1] for number in range(200)]


def asked() -> Iterator[dict[str, Any]]:
    return (question["pod"] for case in drawn() for question in case["questions"])


def test_the_same_seed_makes_the_same_clusters() -> None:
    assert drawn()[:20] == [cases.draw(3, number)[1] for number in range(20)]
    assert drawn()[0] != cases.draw(4, 0)[1]


def test_a_cluster_has_one_to_twelve_nodes() -> None:
    assert {len(case["snapshot"]["nodes"]) for case in drawn()} == set(range(1, 13))


def test_every_kind_of_object_is_drawn() -> None:
    assert set().union(*(case["snapshot"] for case in drawn())) == KINDS


def test_pods_to_place_have_every_feature() -> None:
    assert set().union(*(pod["spec"] for pod in asked())) == SPEC


def test_pods_name_every_kind_of_volume() -> None:
    volumes = [each for pod in asked() for each in pod["spec"].get("volumes", ())]
    assert set().union(*volumes) >= VOLUMES | {"name"}


def test_every_plugin_with_settings_gets_some() -> None:
    configured = {each["name"] for case in drawn() if "profile" in case for each in case["profile"]["pluginConfig"]}
    assert configured == {
        *("NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeAffinity"),
        *("PodTopologySpread", "InterPodAffinity", "VolumeBinding"),
    }


@pytest.mark.parametrize("feature", FEATURES)
def test_some_clusters_do_without_a_feature(feature: str) -> None:
    shares = {FeatureRates(Random(number)).shares[feature] for number in range(50)}
    assert len(shares) > 2


def test_a_snapshot_is_read_whole() -> None:
    case = next(each for each in drawn() if len(each["snapshot"].get("pods", ())) == 40)
    seen = answer.read(case["snapshot"])
    running = [pod for pod in case["snapshot"]["pods"] if pod["status"]["phase"] in ("Running", "Pending")]
    assert set(seen.world.pods) == {pod["metadata"]["uid"] for pod in running}
    assert list(seen.world.rows) == [node["metadata"]["name"] for node in case["snapshot"]["nodes"]]


def test_a_smaller_cluster_is_smaller_and_can_be_asked_about() -> None:
    case = min(drawn(), key=lambda each: (not has_removals(each), len(json.dumps(each))))
    for candidate in cases.smaller(case):
        assert len(json.dumps(candidate)) < len(json.dumps(case))
        assert names_what_is_there(candidate)


def has_removals(case: dict[str, Any]) -> bool:
    return any("removed" in each for question in case["questions"] for each in question.get("what_if", ()))


def names_what_is_there(case: dict[str, Any]) -> bool:
    nodes = {node["metadata"]["name"] for node in case["snapshot"]["nodes"]}
    where = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") for pod in case["snapshot"].get("pods", ())}
    asked = [each for question in case["questions"] for each in question.get("what_if", ())]
    return all(each["node"] in nodes for each in asked) and all(
        where.get(uid) == each["node"] for each in asked for uid in each.get("removed", ())
    )


def test_a_case_shrinks_to_what_matters() -> None:
    def has_a_taint(case: dict[str, Any]) -> bool:
        return any("taints" in node["spec"] for node in case["snapshot"]["nodes"])

    small = shrink.shrunk(next(filter(has_a_taint, drawn())), has_a_taint, cases.smaller)
    assert len(small["questions"]) == len(small["snapshot"]["nodes"]) == 1
    assert set(small["snapshot"]) == {"nodes"}
