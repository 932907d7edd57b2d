"""A node's report as the object that a publisher writes: in the agent's format, or in that of RTE or NFD.

`publish` and the simulator's nodes call it. `kubelet.report` and `plainform` provide the amounts; this module decides
which attributes exist and in which order (exporter spec 1.9, 9). Resources and zones are sorted by name, so that equal
reports are equal objects; the random order of RTE and NFD is not imitated (exporter spec, D-09)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from numalign.agent.inventory.inventory import Mode
from numalign.api.decode import structs
from numalign.api.nrt import normalise, topologymanager, wire
from numalign.api.nrt.nodetopology import NodeTopology

Document = dict[str, Any]
ORDERS: Final = {
    "rte": (
        normalise.FINGERPRINT,
        normalise.FINGERPRINT_METHOD,
        normalise.PLACEMENT_METADATA,
        topologymanager.SCOPE,
        topologymanager.POLICY,
    ),
    "nfd": (topologymanager.POLICY, topologymanager.SCOPE, normalise.FINGERPRINT),
}
"""The attributes of RTE and NFD in their order; a zone limit other than the default follows, which they omit (D-27)."""


def document(topology: NodeTopology, mode: Mode = "own", version: normalise.Version = wire.V1ALPHA2) -> Document:
    """The object without an owner reference. v1alpha1 has no attributes."""
    made: Document = msgspec.to_builtins(normalise.encode(topology, version), enc_hook=structs.encodable)
    if mode != "rte":
        # Deprecated since v1alpha2, but older consumers read it.
        made["topologyPolicies"] = [topologymanager.legacy_token(topology.manager)]
    if mode == "own":
        return made
    if "attributes" in made:
        known = {each["name"]: each for each in made["attributes"]}
        limited = topology.manager.max_zones != topologymanager.DEFAULT_MAX_ZONES
        wanted = (*ORDERS[mode], topologymanager.MAX_ZONES) if limited else ORDERS[mode]
        made["attributes"] = [known[name] for name in wanted if name in known]
    if mode == "nfd":
        made["metadata"].pop("annotations", None)
    return made
