"""Changes of other pods, and of the domains they are in, that help a pod: yes and no, plugin by plugin."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.scheduler.queue.clusterevents import Action
from tests.unit.scheduler.changes import (
    ASSIGNED,
    LABEL,
    NODE,
    TAINT,
    TAINTED,
    TARGET,
    TOLERANT,
    WEB,
    ZONE,
    Change,
    away,
    helps,
    here,
    near,
    ports,
    spread,
)
from tests.unit.scheduler.waitingpods import node, pod

CASES: dict[str, tuple[str, Pod, Change, bool]] = {
    "port, freed": ("NodePorts", pod("a", ports(80)), (ASSIGNED, Action.DELETE, here("x", ports(80)), None), True),
    "port, other one": ("NodePorts", pod("a", ports(80)), (ASSIGNED, Action.DELETE, here("x", ports(81)), None), False),
    "port, none": ("NodePorts", pod("a", ports(80)), (ASSIGNED, Action.DELETE, here("x"), None), False),
    "spread, counted pod came": (
        "PodTopologySpread",
        pod("a", spread()),
        (ASSIGNED, Action.ADD, None, here("x", **WEB)),
        True,
    ),
    "spread, other pod came": ("PodTopologySpread", pod("a", spread()), (ASSIGNED, Action.ADD, None, here("x")), False),
    "spread, elsewhere": (
        "PodTopologySpread",
        pod("a", spread()),
        (ASSIGNED, Action.DELETE, here("x", namespace="other", **WEB), None),
        False,
    ),
    "spread, counted no more": (
        "PodTopologySpread",
        pod("a", spread()),
        (ASSIGNED, Action.UPDATE_POD_LABEL, here("x", **WEB), here("x")),
        True,
    ),
    "spread, counted still": (
        "PodTopologySpread",
        pod("a", spread()),
        (ASSIGNED, Action.UPDATE_POD_LABEL, here("x", **WEB), here("x", labels={"app": "web", "x": "y"})),
        False,
    ),
    "spread, of another revision": (
        "PodTopologySpread",
        pod("a", spread(matchLabelKeys=["rev"]), labels={"rev": "2"}),
        (ASSIGNED, Action.DELETE, here("x", labels={"app": "web", "rev": "1"}), None),
        False,
    ),
    "spread, by the profile": ("PodTopologySpread", pod("a"), (ASSIGNED, Action.DELETE, here("x"), None), True),
    "spread, soft only": (
        "PodTopologySpread",
        pod("a", spread(whenUnsatisfiable="ScheduleAnyway")),
        (ASSIGNED, Action.DELETE, here("x", **WEB), None),
        False,
    ),
    "spread, own label": (
        "PodTopologySpread",
        pod("a", spread(), **WEB),
        (TARGET, Action.UPDATE_POD_LABEL, pod("a", spread()), pod("a", spread(), **WEB)),
        True,
    ),
    "spread, own toleration that counts": (
        "PodTopologySpread",
        pod("a", {**spread(nodeTaintsPolicy="Honor"), **TOLERANT}),
        (TARGET, Action.UPDATE_POD_TOLERATION, pod("a"), pod("a", TOLERANT)),
        True,
    ),
    "spread, own toleration": (
        "PodTopologySpread",
        pod("a", {**spread(), **TOLERANT}),
        (TARGET, Action.UPDATE_POD_TOLERATION, pod("a"), pod("a", TOLERANT)),
        False,
    ),
    "spread, domain came": (
        "PodTopologySpread",
        pod("a", spread()),
        (NODE, Action.ADD, None, node("n", labels=ZONE)),
        True,
    ),
    "spread, node of none came": ("PodTopologySpread", pod("a", spread()), (NODE, Action.ADD, None, node("n")), False),
    "spread, domain left": (
        "PodTopologySpread",
        pod("a", spread()),
        (NODE, Action.DELETE, node("n", labels=ZONE), None),
        True,
    ),
    "spread, node moved": (
        "PodTopologySpread",
        pod("a", spread()),
        (NODE, LABEL, node("n", labels=ZONE), node("n", labels={"zone": "b"})),
        True,
    ),
    "spread, other label": (
        "PodTopologySpread",
        pod("a", spread()),
        (NODE, LABEL, node("n", labels=ZONE), node("n", labels={**ZONE, "x": "y"})),
        False,
    ),
    "spread, taints of a domain": (
        "PodTopologySpread",
        pod("a", spread()),
        (NODE, TAINT, node("n", TAINTED, labels=ZONE), node("n", labels=ZONE)),
        True,
    ),
    "near, it came": ("InterPodAffinity", pod("a", near()), (ASSIGNED, Action.ADD, None, here("x", **WEB)), True),
    "near, another came": ("InterPodAffinity", pod("a", near()), (ASSIGNED, Action.ADD, None, here("x")), False),
    "near, in another namespace": (
        "InterPodAffinity",
        pod("a", near()),
        (ASSIGNED, Action.ADD, None, here("x", namespace="other", **WEB)),
        False,
    ),
    "near, in a namespace that is named": (
        "InterPodAffinity",
        pod("a", near(namespaces=["other"])),
        (ASSIGNED, Action.ADD, None, here("x", namespace="other", **WEB)),
        True,
    ),
    "near, in a namespace that may be meant": (
        "InterPodAffinity",
        pod("a", near(namespaceSelector={"matchLabels": {"team": "x"}})),
        (ASSIGNED, Action.ADD, None, here("x", namespace="other", **WEB)),
        True,
    ),
    "near, got the label": (
        "InterPodAffinity",
        pod("a", near()),
        (ASSIGNED, Action.UPDATE_POD_LABEL, here("x"), here("x", **WEB)),
        True,
    ),
    "away, it left": ("InterPodAffinity", pod("a", away()), (ASSIGNED, Action.DELETE, here("x", **WEB), None), True),
    "away, it came": ("InterPodAffinity", pod("a", away()), (ASSIGNED, Action.ADD, None, here("x", **WEB)), False),
    "away, lost the label": (
        "InterPodAffinity",
        pod("a", away()),
        (ASSIGNED, Action.UPDATE_POD_LABEL, here("x", **WEB), here("x")),
        True,
    ),
    "away, who kept us off left": (
        "InterPodAffinity",
        pod("a", **WEB),
        (ASSIGNED, Action.DELETE, here("x", away()), None),
        True,
    ),
    "away, who did not mind left": (
        "InterPodAffinity",
        pod("a"),
        (ASSIGNED, Action.DELETE, here("x", away()), None),
        False,
    ),
    "near, own label": (
        "InterPodAffinity",
        pod("a"),
        (TARGET, Action.UPDATE_POD_LABEL, pod("a"), pod("a", **WEB)),
        True,
    ),
    "near, domain came": ("InterPodAffinity", pod("a", near()), (NODE, Action.ADD, None, node("n", labels=ZONE)), True),
    "near, node of none came": ("InterPodAffinity", pod("a", near()), (NODE, Action.ADD, None, node("n")), False),
    "away, any node came": ("InterPodAffinity", pod("a", away()), (NODE, Action.ADD, None, node("n")), True),
    "near, node joined": ("InterPodAffinity", pod("a", near()), (NODE, LABEL, node("n"), node("n", labels=ZONE)), True),
    "near, node left": ("InterPodAffinity", pod("a", near()), (NODE, LABEL, node("n", labels=ZONE), node("n")), False),
    "away, node left": ("InterPodAffinity", pod("a", away()), (NODE, LABEL, node("n", labels=ZONE), node("n")), True),
    "away, node joined": (
        "InterPodAffinity",
        pod("a", away()),
        (NODE, LABEL, node("n"), node("n", labels=ZONE)),
        False,
    ),
}


@pytest.mark.parametrize("plugin, waiting, change, expected", CASES.values(), ids=CASES)
def test_a_change_helps(plugin: str, waiting: Pod, change: Change, expected: bool) -> None:
    assert helps(plugin, waiting, *change) is expected
