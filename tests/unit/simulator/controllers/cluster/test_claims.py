from numalign.simulator.apiserver.storage.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from numalign.simulator.controllers.cluster import claims
from numalign.simulator.controllers.framework.actions import Action, MergePatch
from numalign.simulator.trees import Tree


def volume(name: str, size: str, phase: str = "Available", **spec: object) -> Tree:
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    return {"metadata": {"name": name, "uid": name}, "spec": body | spec, "status": {"phase": phase}}


def claim(name: str, size: str, **spec: object) -> Tree:
    body = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": body | spec}


def bound(actions: list[Action]) -> dict[str, str]:
    """Claims and their volumes."""
    changes = [each for each in actions if isinstance(each, MergePatch) and each.resource is PERSISTENTVOLUMECLAIMS]
    return {each.target["metadata"]["name"]: each.body["spec"]["volumeName"] for each in changes if not each.part}


def test_the_smallest_volume_that_fits_is_taken() -> None:
    volumes = [volume("large", "100Gi"), volume("right", "10Gi"), volume("small", "1Gi")]
    assert bound(claims.reconcile([claim("c", "5Gi")], volumes)) == {"c": "right"}


def test_who_comes_first_is_served_first() -> None:
    assert bound(claims.reconcile([claim("a", "1Gi"), claim("b", "1Gi")], [volume("v", "1Gi")])) == {"a": "v"}


def test_class_mode_and_name_have_to_match() -> None:
    volumes = [
        volume("other-class", "1Gi", storageClassName="slow"),
        volume("other-mode", "1Gi", volumeMode="Block"),
        volume("other-access", "1Gi", accessModes=["ReadOnlyMany"]),
        volume("kept", "1Gi", claimRef={"namespace": "default", "name": "somebody"}),
    ]
    assert bound(claims.reconcile([claim("c", "1Gi"), claim("d", "1Gi", volumeName="nowhere")], volumes)) == {}


def test_a_volume_kept_for_a_claim_goes_to_it() -> None:
    volumes = [volume("a", "1Gi"), volume("b", "9Gi", claimRef={"namespace": "default", "name": "c"})]
    assert bound(claims.reconcile([claim("c", "1Gi")], volumes)) == {"c": "b"}


def test_a_claim_that_waits_for_its_first_pod_gets_just_what_a_scheduler_set_aside_for_it() -> None:
    aside = volume("v", "9Gi", claimRef={"namespace": "default", "name": "c", "uid": "c"})
    both = [claim("c", "1Gi"), claim("d", "1Gi")]
    actions = claims.reconcile(both, [volume("w", "1Gi"), aside], {"fast"})
    assert bound(actions) == {"c": "v"}
    told = [each.body["status"]["phase"] for each in actions if isinstance(each, MergePatch) and each.part == "status"]
    assert told == ["Bound", "Bound"]


def test_a_volume_whose_claim_is_gone_is_released() -> None:
    held = volume("v", "1Gi", "Bound", claimRef={"namespace": "default", "name": "c", "uid": "c"})
    [change] = claims.reconcile([], [held])
    assert isinstance(change, MergePatch)
    assert (change.resource, change.body) == (PERSISTENTVOLUMES, {"status": {"phase": "Released"}})
