"""The suites of recorded cases: the scheduler plugin, Koordinator's merge, and the topology publishers.

`judging` looks up the suite of a case here, or why a suite does not apply to numalign. Each module exports `SUITES`."""

from __future__ import annotations

from numalign.oracle.koordinator import koordinator
from numalign.oracle.plugin.suites import caches, filters, numasets, preemptioncycles, preemptions, scores, settings
from numalign.oracle.plugin.suites.suite import Suite
from numalign.oracle.publishers import formats, nodetexts, publisheracts, publisherparts, publishers, publisherscans

MODULES = (
    filters,
    scores,
    numasets,
    settings,
    preemptions,
    preemptioncycles,
    caches,
    formats,
    koordinator,
    nodetexts,
    publishers,
    publisherparts,
    publisherscans,
    publisheracts,
)

SUITES: dict[str, Suite] = {suite.name: suite for module in MODULES for suite in module.SUITES}

ENFORCED_BY_US = "waits for a mode in which we enforce placement ourselves; here the kubelet does"

NOT_APPLICABLE: dict[str, str] = {
    "stringify_resource_list": "renders log lines of the plugin, which we do not write",
    "has_exclusive_resources": "a flag beside a list of containers; here the list alone says it",
    "tm.exclusive": ENFORCED_BY_US,
    "cpu.take": ENFORCED_BY_US,
    "numa.allocate": ENFORCED_BY_US,
    "numa.hints": ENFORCED_BY_US,
    "numa.select": ENFORCED_BY_US,
    **publishers.NOT_APPLICABLE,
}
"""Suites that do not apply, and why."""
