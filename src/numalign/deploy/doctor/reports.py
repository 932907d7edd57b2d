"""Checks of the topology reports and of their CustomResourceDefinition.

A report has no time of its own: the API server's time of the last write counts, or the agent's heartbeat where managed
fields are not known. Only publishers that write periodically whatever happens can be called dead by the age of a
report: our agent renews a heartbeat, RTE and NFD write every period."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from numalign.api.attributes.repairs import ORDINARY, GuessCode
from numalign.api.nrt import publishers, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.deploy.doctor import programs, repairs
from numalign.deploy.doctor import view as views
from numalign.deploy.doctor.checks import ERROR, INFO, WARNING, Check, Sighting
from numalign.deploy.doctor.observed import (
    DAEMON_SETS,
    DEFINITION,
    DEFINITIONS,
    NODES,
    REPORTS,
    Definition,
    PublishedReport,
)
from numalign.deploy.doctor.view import View
from numalign.kube import resources

PLURAL: Final = REPORTS[0].plural
SILENT: Final = 2 * publishers.HEARTBEAT_SECONDS
"""Seconds without a write after which a publisher is taken for dead."""
FOREVER: Final = datetime.max.replace(tzinfo=UTC)
MOST_NAMED: Final = 4
NEEDED: Final = (NODES.plural, PLURAL)
CRD: Final = f"CustomResourceDefinition {DEFINITION}"


def _crd_missing(view: View) -> Iterator[Sighting]:
    if view.observed.definition is None:
        yield Sighting(where=CRD, seen="does not exist")


def _crd_old(view: View) -> Iterator[Sighting]:
    definition = view.observed.definition
    if definition is None or _is_foreign(definition):
        return
    served = {each.name: each for each in definition.spec.versions if each.served}
    newest = served.get(wire.V1ALPHA2)
    if newest is None:
        yield Sighting(where=CRD, seen=f"serves {', '.join(sorted(served)) or 'no version'}, not {wire.V1ALPHA2}")
    elif not _keeps(newest.schema.schema, "attributes"):
        yield Sighting(where=CRD, seen=f"{wire.V1ALPHA2} has no field attributes, so the API server drops them")


def _keeps(schema: dict[str, Any], name: str) -> bool:
    properties = schema.get("properties")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    return is_open or not schema or (isinstance(properties, dict) and name in properties)


def _is_foreign(definition: Definition) -> bool:
    spec = definition.spec
    return spec.scope != "Cluster" or spec.names.kind != wire.KIND or spec.group != wire.GROUP


def _crd_foreign(view: View) -> Iterator[Sighting]:
    definition = view.observed.definition
    if definition is None:
        return
    spec = definition.spec
    if _is_foreign(definition):
        seen = f"defines {spec.names.kind or 'no kind'} with scope {spec.scope or 'unknown'}, not {wire.KIND}, Cluster"
        yield Sighting(where=CRD, seen=seen)
    for version in definition.spec.versions:
        if version.served and not _keeps(version.schema.schema, "zones"):
            yield Sighting(where=CRD, seen=f"{version.name} has no field zones")


def _crd_not_established(view: View) -> Iterator[Sighting]:
    definition = view.observed.definition
    for each in definition.status.conditions if definition is not None else ():
        if each.type in ("Established", "NamesAccepted") and each.status == "False":
            yield Sighting(where=CRD, seen=f"{each.type} is False: {each.message or 'no reason given'}")


def _crd_owner(view: View) -> Iterator[Sighting]:
    definition = view.observed.definition
    if definition is None:
        return
    release = definition.metadata.annotations.get("meta.helm.sh/release-name", "")
    keeps = definition.metadata.annotations.get("helm.sh/resource-policy") == "keep"
    if release and not keeps:
        yield Sighting(where=CRD, seen=f"belongs to the Helm release {release} and is not kept when that is removed")


def _missing(view: View) -> Iterator[Sighting]:
    if view.observed.definition is None and not view.reports:
        return
    for name, node in view.nodes.items():
        if name not in view.reports and not view.is_young(node.metadata.creation_timestamp):
            yield Sighting(node=name, seen="no NodeResourceTopology of its name")


def last_write(report: PublishedReport) -> str | None:
    """The time of the last write, by the API server's clock where it is known."""
    return publishers.latest(report.metadata).time or report.metadata.annotations.get(publishers.HEARTBEAT)


def _stale(view: View) -> Iterator[Sighting]:
    for name in view.nodes:
        report = view.reports.get(name)
        if report is None or not _writes_always(report):
            continue
        age = view.age(last_write(report))
        if age is not None and age > SILENT:
            yield Sighting(node=name, seen=f"its report was last written {_about(age)} ago")


def _writes_always(report: PublishedReport) -> bool:
    owners = publishers.writers(report.metadata)
    periodic = {publishers.RTE, publishers.NFD} & {*owners}
    return publishers.HEARTBEAT in report.metadata.annotations or bool(periodic)


def _about(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _orphaned(view: View) -> Iterator[Sighting]:
    now = view.observed.now
    before = now - timedelta(seconds=publishers.GRACE) if now is not None else FOREVER
    for report in publishers.orphans(view.node_names, (each.metadata for each in view.observed.reports), before):
        yield Sighting(
            where=f"{wire.KIND} {report.name}",
            seen="there is no Node of this name",
            repair=repairs.deletion(
                resources.TOPOLOGIES, report, "its Node does not exist", unless=NODES.at(report.name)
            ),
        )


def _unreadable(view: View) -> Iterator[Sighting]:
    for name, topology in view.topologies.items():
        repaired = Counter(
            each.code for each in topology.guesses if each.code not in ORDINARY and each.code not in JUDGED_ELSEWHERE
        )
        if repaired:
            common = repaired.most_common(MOST_NAMED)
            named = ", ".join(f"{code} ({count} times)" if count > 1 else code for code, count in common)
            more = f" and {len(repaired) - MOST_NAMED} more" * (len(repaired) > MOST_NAMED)
            fix = f"see the report with numalign topology {name}, and correct its publisher"
            yield Sighting(node=name, seen=f"values that were repaired or skipped: {named}{more}", fix=fix)


JUDGED_ELSEWHERE: Final = frozenset({GuessCode.NO_ZONES, GuessCode.FACT_UNKNOWN})


def _newer_agent(view: View) -> Iterator[Sighting]:
    for name, topology in view.topologies.items():
        fields = sorted(each.field for each in topology.guesses if each.code == GuessCode.FACT_UNKNOWN)
        if fields:
            yield Sighting(node=name, seen=f"{', '.join(fields[:MOST_NAMED])} cannot be read by this release")


def _without_zones(view: View) -> Iterator[Sighting]:
    for name, topology in view.topologies.items():
        if not topology.zones:
            yield Sighting(node=name, seen="its report has no zone of type Node")


def _without_fingerprint(view: View) -> Iterator[Sighting]:
    for name, topology in view.topologies.items():
        if topology.fingerprint is None and topology.facts.placements is None:
            yield Sighting(node=name, seen="its report has no fingerprint of the node's pods")


def _without_placements(view: View) -> Iterator[Sighting]:
    for name, topology in view.topologies.items():
        if topology.facts.managers is not None and topology.facts.placements is None:
            yield Sighting(node=name, seen="the agent's report does not say what pods hold")


def _two_publishers(view: View) -> Iterator[Sighting]:
    for name in view.nodes:
        report = view.reports.get(name)
        if report is None:
            continue
        found = [each or "an unnamed writer" for each in publishers.writers(report.metadata)]
        if publishers.SIGNED in report.metadata.annotations and publishers.AGENT not in found and found:
            found.append(publishers.AGENT)
        if publishers.RTE_UPDATE in report.metadata.annotations and not {publishers.RTE, publishers.AGENT} & {*found}:
            found.append(publishers.RTE)
        claim = publishers.claimed_by(report.metadata)
        if publishers.AGENT in found and claim:
            found.append(f"{claim} (by label)")
        if len(found) > 1:
            yield Sighting(node=name, seen=f"its report was written by {' and '.join(sorted({*found}))}")


def _two_daemon_sets(view: View) -> Iterator[Sighting]:
    agents = [each for each in programs.publishers_of(view) if each.publishes]
    for name, node in view.nodes.items():
        there = [each.title for each in agents if not each.obstacle(node)]
        if len(there) > 1:
            yield Sighting(node=name, seen=f"{' and '.join(sorted(there))} both select the node")


def _single_zone(view: View) -> Iterator[Sighting]:
    lone = [name for name, topology in view.topologies.items() if len(topology.zones) == 1]
    everywhere = bool(lone) and len(lone) == len(view.topologies)
    for name in lone:
        yield Sighting(node=name, seen="one NUMA zone", severity=WARNING if everywhere and len(lone) > 1 else None)


def _devices(view: View) -> Iterator[Sighting]:
    for name, topology in view.topologies.items():
        without = sorted({*_unzoned(topology), *_unreported(view, name, topology)})
        if without:
            yield Sighting(node=name, seen=f"{', '.join(without)}: no zone known")


def _unzoned(topology: NodeTopology) -> Iterator[str]:
    return (each.resource for each in topology.facts.devices or () if not each.zones and each.total)


def _unreported(view: View, name: str, topology: NodeTopology) -> Iterator[str]:
    if topology.facts.devices is not None or not topology.zones:
        return
    zoned = {resource for zone in topology.zones for resource in zone.resources}
    yield from (each for each in views.extended(view.nodes[name].allocatable) if each not in zoned)


def _disagrees(view: View) -> Iterator[Sighting]:
    for name, asked in view.observed.configz.items():
        topology = view.topologies.get(name)
        if topology is None:
            continue
        reported, runs = views.of_report(topology), views.of_configz(name, asked)
        for field, one, other in (
            ("topologyManagerPolicy", reported.policy, runs.policy),
            ("topologyManagerScope", reported.scope, runs.scope),
        ):
            if None not in (one, other) and one != other:
                yield Sighting(node=name, seen=f"its report says {field} {one}, its kubelet runs with {other}")


CHECKS: Final = (
    Check(
        id="crd-missing",
        severity=ERROR,
        title="NodeResourceTopology is not defined",
        why="Publishers cannot write reports, so a scheduler knows nothing of zones.",
        fix="install the CustomResourceDefinition; the chart and the deployer contain it",
        needs=(DEFINITIONS.plural,),
        find=_crd_missing,
    ),
    Check(
        id="crd-old",
        severity=ERROR,
        title="NodeResourceTopology is defined in an old version",
        why="Version v1alpha1 has no attributes: policies, fingerprints and what pods hold are lost.",
        fix="replace the definition by one that serves v1alpha2; existing objects stay",
        needs=(DEFINITIONS.plural,),
        find=_crd_old,
    ),
    Check(
        id="crd-foreign",
        severity=ERROR,
        title="NodeResourceTopology is defined by another project, and differently",
        why="Reports that fit the published API are refused or lose fields.",
        fix="replace the definition by the published one of topology.node.k8s.io",
        needs=(DEFINITIONS.plural,),
        find=_crd_foreign,
    ),
    Check(
        id="crd-not-established",
        severity=ERROR,
        title="The API server does not accept the definition of NodeResourceTopology",
        why="The API server does not serve the kind, or serves it under other names.",
        fix="correct what the condition names; another definition may have taken the names",
        needs=(DEFINITIONS.plural,),
        find=_crd_not_established,
    ),
    Check(
        id="crd-goes-with-release",
        severity=INFO,
        title="The definition of NodeResourceTopology goes with a Helm release",
        why="To uninstall that release deletes the definition, and with it all reports.",
        fix="annotate the definition with helm.sh/resource-policy: keep",
        needs=(DEFINITIONS.plural,),
        find=_crd_owner,
    ),
    Check(
        id="report-missing",
        severity=ERROR,
        title="A node has no report",
        why="Nothing is known of its zones. numalign does not use it for aligned pods at first, then only blindly.",
        fix="see that an agent runs on the node and may write: kubectl -n NAMESPACE logs of its pod",
        needs=NEEDED,
        find=_missing,
    ),
    Check(
        id="report-stale",
        severity=ERROR,
        title="The report of a node is old",
        why="Its publisher has ended or cannot write; what the report says to be free may be taken.",
        fix="restart the publisher of the node, and read its log",
        needs=NEEDED,
        find=_stale,
    ),
    Check(
        id="report-orphaned",
        severity=WARNING,
        title="A report has no Node",
        why="It fills lists and metrics, and a new node of that name would start with the wrong zones.",
        fix="delete it (--fix), and run numalign agent gc to have that done",
        needs=NEEDED,
        find=_orphaned,
    ),
    Check(
        id="report-unreadable",
        severity=WARNING,
        title="A report has values that make no sense",
        why="The reader skips or repairs them and counts the smaller amount, so the node may get fewer pods.",
        fix="correct its publisher",
        needs=NEEDED,
        find=_unreadable,
    ),
    Check(
        id="report-from-newer-agent",
        severity=WARNING,
        title="An agent is newer than this program",
        why="A scheduler of this release cannot read everything that the agent writes, and predicts less exactly.",
        fix="upgrade the scheduler first, then the agents",
        needs=NEEDED,
        find=_newer_agent,
    ),
    Check(
        id="report-without-zones",
        severity=ERROR,
        title="A report has no zones",
        why="A scheduler cannot align anything on the node.",
        fix="read the log of its publisher; RTE and NFD write no zones where they cannot reach podresources",
        needs=NEEDED,
        find=_without_zones,
    ),
    Check(
        id="report-without-fingerprint",
        severity=WARNING,
        title="A report does not say which pods it covers",
        why="A scheduler cannot tell whether the report knows of the pods that it bound last.",
        fix="switch the fingerprint on: --pods-fingerprint of RTE, -pods-fingerprint of NFD, or run the numalign agent",
        needs=NEEDED,
        find=_without_fingerprint,
    ),
    Check(
        id="report-without-placements",
        severity=WARNING,
        title="The agent cannot see what pods hold",
        why="The kubelet's podresources socket does not answer, so the report has amounts but no pods.",
        fix="mount the kubelet's folder pod-resources into the agent, and see that the kubelet serves its socket",
        needs=NEEDED,
        find=_without_placements,
    ),
    Check(
        id="report-two-publishers",
        severity=ERROR,
        title="Two publishers write one report",
        why="They overwrite each other's zones and fingerprints, and a scheduler sees both in turn.",
        fix="remove one of the two from the node",
        needs=NEEDED,
        find=_two_publishers,
    ),
    Check(
        id="publishers-overlap",
        severity=ERROR,
        title="Two DaemonSets of publishers select one node",
        why="Both publish the report of the node.",
        fix="give them different node selectors, or remove one",
        needs=(NODES.plural, DAEMON_SETS.plural),
        find=_two_daemon_sets,
    ),
    Check(
        id="report-contradicts-kubelet",
        severity=ERROR,
        title="A report names another policy than its kubelet has",
        why="The scheduler predicts with the wrong policy or scope, and the kubelet rejects what was placed.",
        fix="restart the publisher of the node: it has not read the kubelet's configuration again",
        needs=NEEDED,
        find=_disagrees,
    ),
    Check(
        id="node-single-zone",
        severity=INFO,
        title="A node has one NUMA zone only",
        why="Everything on it is aligned whatever the policy; NUMA-aware scheduling changes nothing there.",
        fix="nothing; if the machine has several zones, switch NUMA on in its firmware or its hypervisor",
        needs=NEEDED,
        find=_single_zone,
    ),
    Check(
        id="devices-without-zone",
        severity=WARNING,
        title="Devices without a NUMA zone",
        why="The kubelet cannot align such devices: a pod may get one beside the wrong zone.",
        fix="use a device plugin that reports topology, and see that sysfs tells the device's NUMA node",
        needs=NEEDED,
        find=_devices,
    ),
)
