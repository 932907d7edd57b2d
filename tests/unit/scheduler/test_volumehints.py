"""Changes of volumes, and of pods that used them, that help a pod: yes and no, plugin by plugin."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.scheduler.queue.clusterevents import Action, Resource
from tests.unit.scheduler.changes import ASSIGNED, DISK, EPHEMERAL, Change, claim, claiming, helps, here, volume
from tests.unit.scheduler.waitingpods import pod

CASES: dict[str, tuple[str, Pod, Change, bool]] = {
    "binding, own claim": (
        "VolumeBinding",
        pod("a", claiming("c")),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, claim("c"), claim("c")),
        True,
    ),
    "binding, own ephemeral claim": (
        "VolumeBinding",
        pod("a", EPHEMERAL),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim("a-v")),
        True,
    ),
    "binding, claim of that name elsewhere": (
        "VolumeBinding",
        pod("a", claiming("c")),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim("c", "other")),
        False,
    ),
    "binding, volume": (
        "VolumeBinding",
        pod("a"),
        (Resource.PERSISTENT_VOLUME, Action.UPDATE, volume(), volume()),
        True,
    ),
    "binding, capacity": ("VolumeBinding", pod("a"), (Resource.CSI_STORAGE_CAPACITY, Action.ADD, None, None), True),
    "binding, driver came": ("VolumeBinding", pod("a"), (Resource.CSI_DRIVER, Action.ADD, None, None), False),
    "zone, volume moved": (
        "VolumeZone",
        pod("a"),
        (Resource.PERSISTENT_VOLUME, Action.UPDATE, volume(), volume(zone="a")),
        True,
    ),
    "zone, volume did not": (
        "VolumeZone",
        pod("a"),
        (Resource.PERSISTENT_VOLUME, Action.UPDATE, volume(), volume()),
        False,
    ),
    "zone, class changed": ("VolumeZone", pod("a"), (Resource.STORAGE_CLASS, Action.UPDATE, None, None), False),
    "disk, user of the claim left": (
        "VolumeRestrictions",
        pod("a", claiming("c")),
        (ASSIGNED, Action.DELETE, here("x", claiming("c")), None),
        True,
    ),
    "disk, user of another left": (
        "VolumeRestrictions",
        pod("a", claiming("c")),
        (ASSIGNED, Action.DELETE, here("x", claiming("d")), None),
        False,
    ),
    "disk, both have one": (
        "VolumeRestrictions",
        pod("a", DISK),
        (ASSIGNED, Action.DELETE, here("x", DISK), None),
        True,
    ),
    "limits, volume left": (
        "NodeVolumeLimits",
        pod("a"),
        (ASSIGNED, Action.DELETE, here("x", claiming("d")), None),
        True,
    ),
    "limits, nothing left": ("NodeVolumeLimits", pod("a"), (ASSIGNED, Action.DELETE, here("x"), None), False),
    "limits, detached": ("NodeVolumeLimits", pod("a"), (Resource.VOLUME_ATTACHMENT, Action.DELETE, None, None), True),
}


@pytest.mark.parametrize("plugin, waiting, change, expected", CASES.values(), ids=CASES)
def test_a_change_helps(plugin: str, waiting: Pod, change: Change, expected: bool) -> None:
    assert helps(plugin, waiting, *change) is expected
