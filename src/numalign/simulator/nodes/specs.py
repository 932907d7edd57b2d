"""What a simulated node is, as data: scenarios are read into these, `fleet` makes nodes of them.

Everything has the default of a plain node, so a story names only what it is about. Times are in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from numalign.api.objects.node import Taint
from numalign.kubelet.machine import Machine
from numalign.kubelet.settings import Settings

Dialect = Literal["agent", "rte", "nfd", "none"]


class Faults(Struct, frozen=True, kw_only=True):
    """How a publisher misbehaves. Numbers are chances from 0 to 1, drawn for every report."""

    dropped: float = 0.0
    """The report is made and never written."""
    stale: float = 0.0
    """What is written is the report before this one."""
    duplicated: float = 0.0
    """It is written a second time, a lag later."""
    garbage: float = 0.0
    """It says what no node can be; the schema accepts it all the same."""
    restarted: float = 0.0
    """The publisher dies instead of looking, and is started again."""
    overlapping: bool = False
    """It looks at the node again while its last report is on its way; no publisher that is known does."""
    without: tuple[str, ...] = ()
    """Names of top-level attributes that are left out of every report."""


class Publishing(Struct, frozen=True, kw_only=True):
    """Who publishes the node's topology, how often, and how late. Defaults that are None are the publisher's own."""

    dialect: Dialect = "agent"
    period: float = 60.0
    """Between looks at the node; 0: only when something happens."""
    reactive: bool = True
    window: float | None = None
    """How long after something happened the publisher looks, so that what happens together is reported once."""
    lag: float = 0.0
    """From looking at the node until the report is written."""
    jitter: float = 0.0
    """Up to so much is added to every lag and period, by chance."""
    faults: Faults = Faults()


class NodeSpec(Struct, frozen=True, kw_only=True):
    """One node. Nodes of equal machine and settings share one kubelet model."""

    name: str
    machine: Machine
    settings: Settings = Settings()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    publishing: Publishing = Publishing()
    start_seconds: float = 1.0
    """From admission until the first container of a pod runs."""
    stop_seconds: float = 0.5
    """What containers take to end when they are told to; the grace period cuts it short."""
    boot_seconds: float = 60.0
    static_pods: tuple[Mapping[str, Any], ...] = ()
    """Pods from files on the node, as objects; the API server sees mirrors of them."""
