"""Changes that help pods which one node at a time was held against: yes and no, plugin by plugin."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.scheduler.queue.clusterevents import Action, Resource
from tests.unit.scheduler.changes import (
    ALLOCATABLE,
    ASSIGNED,
    CORDONED,
    LABEL,
    NODE,
    SSD,
    TAINT,
    TAINTED,
    TARGET,
    TOLERANT,
    UNCORDONED,
    WEB,
    Change,
    helps,
    here,
    selecting,
)
from tests.unit.scheduler.waitingpods import asking, node, pod

CASES: dict[str, tuple[str, Pod, Change, bool]] = {
    "fit, pod left": ("NodeResourcesFit", pod("a", asking(cpu=1)), (ASSIGNED, Action.DELETE, here("x"), None), True),
    "fit, node came": ("NodeResourcesFit", pod("a", asking(cpu=8)), (NODE, Action.ADD, None, node("n")), True),
    "fit, too small node came": (
        "NodeResourcesFit",
        pod("a", asking(cpu=9)),
        (NODE, Action.ADD, None, node("n")),
        False,
    ),
    "fit, node grew": (
        "NodeResourcesFit",
        pod("a", asking(cpu=9)),
        (NODE, ALLOCATABLE, node("n"), node("n", cpu=9)),
        True,
    ),
    "fit, node grew elsewhere": (
        "NodeResourcesFit",
        pod("a", asking(cpu=4)),
        (NODE, ALLOCATABLE, node("n"), node("n", memory="32Gi")),
        False,
    ),
    "fit, node takes more pods": (
        "NodeResourcesFit",
        pod("a", asking(cpu=4)),
        (NODE, ALLOCATABLE, node("n", pods=1), node("n", pods=2)),
        True,
    ),
    "fit, other pod asks for less": (
        "NodeResourcesFit",
        pod("a", asking(cpu=4)),
        (ASSIGNED, Action.UPDATE_POD_SCALE_DOWN, here("x", asking(cpu=2)), here("x", asking(cpu=1))),
        True,
    ),
    "fit, other pod asks for less of something else": (
        "NodeResourcesFit",
        pod("a", asking(cpu=4)),
        (ASSIGNED, Action.UPDATE_POD_SCALE_DOWN, here("x", asking(memory=2)), here("x", asking(memory=1))),
        False,
    ),
    "fit, other pod got a label": (
        "NodeResourcesFit",
        pod("a"),
        (ASSIGNED, Action.UPDATE_POD_LABEL, here("x"), here("x", **WEB)),
        False,
    ),
    "fit, device class": ("NodeResourcesFit", pod("a"), (Resource.DEVICE_CLASS, Action.UPDATE, None, None), True),
    "cordon, lifted": ("NodeUnschedulable", pod("a"), (NODE, TAINT, node("n", CORDONED), node("n")), True),
    "cordon, never there": ("NodeUnschedulable", pod("a"), (NODE, TAINT, node("n"), node("n", TAINTED)), False),
    "cordon, came with it": ("NodeUnschedulable", pod("a"), (NODE, Action.ADD, None, node("n", CORDONED)), False),
    "cordon, tolerated now": (
        "NodeUnschedulable",
        pod("a", UNCORDONED),
        (TARGET, Action.UPDATE_POD_TOLERATION, pod("a"), pod("a", UNCORDONED)),
        True,
    ),
    "cordon, other toleration": (
        "NodeUnschedulable",
        pod("a", TOLERANT),
        (TARGET, Action.UPDATE_POD_TOLERATION, pod("a"), pod("a", TOLERANT)),
        False,
    ),
    "taint, lifted": ("TaintToleration", pod("a"), (NODE, TAINT, node("n", TAINTED), node("n")), True),
    "taint, tolerated before": (
        "TaintToleration",
        pod("a", TOLERANT),
        (NODE, TAINT, node("n", TAINTED), node("n")),
        False,
    ),
    "taint, came with it": ("TaintToleration", pod("a"), (NODE, Action.ADD, None, node("n", TAINTED)), False),
    "taint, labels do not matter": ("TaintToleration", pod("a"), (NODE, LABEL, node("n", TAINTED), node("n")), False),
    "label, wanted": (
        "NodeAffinity",
        pod("a", selecting(**SSD)),
        (NODE, LABEL, node("n"), node("n", labels=SSD)),
        True,
    ),
    "label, there before": (
        "NodeAffinity",
        pod("a", selecting(**SSD)),
        (NODE, LABEL, node("n", labels=SSD), node("n", labels={**SSD, "x": "y"})),
        False,
    ),
    "label, other node came": ("NodeAffinity", pod("a", selecting(**SSD)), (NODE, Action.ADD, None, node("n")), False),
    "name, that node": ("NodeName", pod("a", {"nodeName": "n"}), (NODE, Action.ADD, None, node("n")), True),
    "name, other node": ("NodeName", pod("a", {"nodeName": "n"}), (NODE, Action.ADD, None, node("m")), False),
    "features, spec changed": (
        "NodeDeclaredFeatures",
        pod("a"),
        (TARGET, Action.UPDATE_POD_SCALE_DOWN, pod("a", asking(cpu=2)), pod("a", asking(cpu=1))),
        True,
    ),
    "features, status changed": (
        "NodeDeclaredFeatures",
        pod("a"),
        (TARGET, Action.UPDATE, pod("a"), pod("a", status={"phase": "Pending"})),
        False,
    ),
    "preemption, victim left": ("DefaultPreemption", pod("a"), (ASSIGNED, Action.DELETE, here("x"), None), False),
}


@pytest.mark.parametrize("plugin, waiting, change, expected", CASES.values(), ids=CASES)
def test_a_change_helps(plugin: str, waiting: Pod, change: Change, expected: bool) -> None:
    assert helps(plugin, waiting, *change) is expected
