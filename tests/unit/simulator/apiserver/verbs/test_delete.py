"""How objects go: at once, after grace, after finalizers."""

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, PODS
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import doors

GRACE = {
    "a bound pod, by its own wish": ("node-1", "Running", None, 30),
    "a bound pod, by the caller's": ("node-1", "Running", 5, 5),
    "a bound pod, at once": ("node-1", "Running", 0, None),
    "an unbound pod": ("", "Pending", None, None),
    "a pod that has ended": ("node-1", "Succeeded", 60, None),
    "less than nothing is one second": ("node-1", "Running", -3, 1),
}


@pytest.mark.parametrize("node, phase, asked, grace", GRACE.values(), ids=GRACE)
def test_pods_get_time_to_end(node: str, phase: str, asked: int | None, grace: int | None) -> None:
    api = doors.door()
    api.create(PODS, doors.pod("web", node=node))
    api.update(PODS, doors.pod("web") | {"status": {"phase": phase}}, subresource="status")
    api.delete(PODS, "web", "default", grace=asked)
    left = [tree["metadata"]["deletionGracePeriodSeconds"] for tree in api.list(PODS).items]
    assert left == ([] if grace is None else [grace])


def leaving(*asked: int | None) -> Tree:
    """A bound pod after so many deletions, ten seconds apart."""
    door = doors.Door()
    door.api.create(PODS, doors.pod("web", node="node-1"))
    for grace in asked:
        last = door.api.delete(PODS, "web", "default", grace=grace)["metadata"]
        door.hand.seconds += 10
    return {key: last[key] for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation")}


SHORTENED = {
    "once": ((30,), "2026-11-16T05:00:30Z", 30),
    "shorter counts from the first": ((30, 20), "2026-11-16T05:00:20Z", 20),
    "longer is not heard": ((30, 20, 60), "2026-11-16T05:00:20Z", 20),
    "nothing said changes nothing": ((30, None), "2026-11-16T05:00:30Z", 30),
}


@pytest.mark.parametrize("asked, moment, grace", SHORTENED.values(), ids=SHORTENED)
def test_grace_can_only_be_shortened(asked: tuple[int | None, ...], moment: str, grace: int) -> None:
    assert leaving(*asked) == {
        "deletionTimestamp": moment,
        "deletionGracePeriodSeconds": grace,
        "generation": 2,
    }


def test_watchers_see_a_pod_marked_before_it_is_gone() -> None:
    door = doors.Door()
    door.api.create(PODS, doors.pod("web"))
    changes = door.changes(PODS)
    door.api.delete(PODS, "web", "default")
    assert [(each.kind, each.tree["metadata"]["deletionGracePeriodSeconds"]) for each in changes] == [
        ("MODIFIED", 0),
        ("DELETED", 0),
    ]


def test_others_are_gone_without_a_mark() -> None:
    door = doors.Door()
    door.api.create(CONFIGMAPS, doors.named("c"))
    changes = door.changes(CONFIGMAPS)
    door.api.delete(CONFIGMAPS, "c", "default")
    assert [(each.kind, "deletionTimestamp" in each.tree["metadata"]) for each in changes] == [("DELETED", False)]


def test_what_waited_for_a_finalizer_is_last_seen_with_it() -> None:
    door = doors.Door()
    door.api.create(CONFIGMAPS, doors.named("c", finalizers=["mine/own"]))
    door.api.delete(CONFIGMAPS, "c", "default")
    changes = door.changes(CONFIGMAPS)
    door.api.update(CONFIGMAPS, doors.named("c"))
    assert [(each.kind, each.tree["metadata"]["finalizers"]) for each in changes] == [("DELETED", ["mine/own"])]


def test_a_name_is_taken_until_its_holder_is_gone() -> None:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("c", finalizers=["mine/own"]))
    api.delete(CONFIGMAPS, "c", "default")
    with pytest.raises(StatusError) as caught:
        api.create(CONFIGMAPS, doors.named("c"))
    assert caught.value.message == 'object is being deleted: configmaps "c" already exists'


POLICIES = {
    "": None,
    "Background": None,
    "Orphan": ["orphan"],
    "Foreground": ["foregroundDeletion"],
}


@pytest.mark.parametrize("policy, finalizers", POLICIES.items(), ids=POLICIES)
def test_what_becomes_of_dependents_is_noted_for_the_collector(policy: str, finalizers: list[str] | None) -> None:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("c"))
    api.delete(CONFIGMAPS, "c", "default", propagation=policy)
    left = [tree["metadata"]["finalizers"] for tree in api.list(CONFIGMAPS).items]
    assert left == ([] if finalizers is None else [finalizers])


def test_a_later_policy_replaces_the_earlier() -> None:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("c", finalizers=["mine/own"]))
    api.delete(CONFIGMAPS, "c", "default", propagation="Foreground")
    last = api.delete(CONFIGMAPS, "c", "default", propagation="Orphan")
    assert last["metadata"]["finalizers"] == ["mine/own", "orphan"]


def test_preconditions_have_to_hold() -> None:
    api = doors.door()
    made = api.create(CONFIGMAPS, doors.named("c"))["metadata"]
    with pytest.raises(StatusError) as by_uid:
        api.delete(CONFIGMAPS, "c", "default", uid="x")
    with pytest.raises(StatusError) as by_version:
        api.delete(CONFIGMAPS, "c", "default", version="1")
    assert by_uid.value.message == (
        f'Operation cannot be fulfilled on ConfigMap "c": the UID in the precondition (x) does not match the UID in '
        f"record ({made['uid']}). The object might have been deleted and then recreated"
    )
    assert by_version.value.message == (
        'Operation cannot be fulfilled on ConfigMap "c": the ResourceVersion in the precondition (1) does not match '
        "the ResourceVersion in record (2). The object might have been modified"
    )


def test_a_dry_run_leaves_the_object() -> None:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("c"))
    api.delete(CONFIGMAPS, "c", "default", dry_run=True)
    assert len(api.list(CONFIGMAPS).items) == 1


def test_a_deleted_event_carries_the_version_of_the_deletion() -> None:
    door = doors.Door()
    door.api.create(CONFIGMAPS, doors.named("c"))
    changes = door.changes(CONFIGMAPS)
    door.api.delete(CONFIGMAPS, "c", "default")
    assert [(each.kind, each.tree["metadata"]["resourceVersion"]) for each in changes] == [("DELETED", "3")]
