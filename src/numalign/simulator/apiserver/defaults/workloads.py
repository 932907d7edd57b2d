"""Defaults of workloads: deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs.

`kinds` calls one completer for each kind. The selector and labels of a job come from its uid, unless manualSelector is
set."""

from typing import Final

from numalign.simulator.apiserver.defaults import podspecs
from numalign.simulator.apiserver.storage.store import ObjectReader
from numalign.simulator.trees import Tree

QUARTER: Final = "25%"
KEPT_REVISIONS: Final = 10
RETAIN: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
UNLIMITED: Final = 2**31 - 1
CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
GENERATION: Final = "deprecated.daemonset.template.generation"


def deployment(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = _spec(tree)
    podspecs.fill(spec, {"replicas": 1, "revisionHistoryLimit": KEPT_REVISIONS, "progressDeadlineSeconds": 600})
    _roll(spec, "strategy", {"maxUnavailable": QUARTER, "maxSurge": QUARTER})


def replica_set(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    podspecs.fill(_spec(tree), {"replicas": 1})


def replication_controller(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = _spec(tree)
    labels = (spec["template"]["metadata"].get("labels") or {}).copy()
    podspecs.fill(spec, {"replicas": 1} | ({"selector": labels} if labels and not spec.get("selector") else {}))
    if labels:
        tree["metadata"].setdefault("labels", labels)


def stateful_set(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = _spec(tree)
    podspecs.fill(spec, {"replicas": 1, "revisionHistoryLimit": KEPT_REVISIONS, "podManagementPolicy": "OrderedReady"})
    spec.setdefault("serviceName", "")
    spec.setdefault("persistentVolumeClaimRetentionPolicy", RETAIN.copy())
    _roll(spec, "updateStrategy", {"partition": 0, "maxUnavailable": 1})
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        podspecs.complete_claim(claim.setdefault("spec", {}))
        claim.setdefault("status", {"phase": "Pending"})


def daemon_set(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = _spec(tree)
    podspecs.fill(spec, {"revisionHistoryLimit": KEPT_REVISIONS})
    _roll(spec, "updateStrategy", {"maxUnavailable": 1, "maxSurge": 0})
    changed = old is not None and old["spec"].get("template") != spec.get("template")
    number = 1 if old is None else int((old["metadata"].get("annotations") or {}).get(GENERATION, 1)) + changed
    tree["metadata"]["annotations"] = (tree["metadata"].get("annotations") or {}) | {GENERATION: str(number)}


def job(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = _spec(tree)
    _complete_job(spec)
    if old is None and not spec["manualSelector"]:
        _select_by_uid(tree)
    if old is None and spec["template"]["metadata"].get("labels"):
        tree["metadata"].setdefault("labels", spec["template"]["metadata"]["labels"].copy())


def _complete_job(spec: Tree) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    limit = UNLIMITED if spec.get("backoffLimitPerIndex") is not None else 6
    policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    defaults: Tree = {"parallelism": 1, "backoffLimit": limit, "completionMode": "NonIndexed"}
    podspecs.fill(spec, defaults | {"podReplacementPolicy": policy})
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            podspecs.fill(condition, {"status": "True"})


def _select_by_uid(tree: Tree) -> None:
    metadata, spec = tree["metadata"], tree["spec"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    labels = {CONTROLLER_UID: uid, "batch.kubernetes.io/job-name": name, "controller-uid": uid, "job-name": name}
    template = spec["template"]["metadata"]
    template["labels"] = (template.get("labels") or {}) | labels
    selector = spec.get("selector") or {}
    spec["selector"] = selector | {"matchLabels": (selector.get("matchLabels") or {}) | {CONTROLLER_UID: uid}}


def cron_job(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, {"concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
    spec.setdefault("suspend", False)
    jobs = spec.setdefault("jobTemplate", {})
    jobs.setdefault("metadata", {})
    _complete_template(jobs.setdefault("spec", {}))


def _spec(tree: Tree) -> Tree:
    spec: Tree = tree.setdefault("spec", {})
    _complete_template(spec)
    return spec


def _complete_template(spec: Tree) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    podspecs.complete_spec(template.setdefault("spec", {}), is_template=True)


def _roll(spec: Tree, field: str, pace: Tree) -> None:
    strategy = spec.setdefault(field, {})
    podspecs.fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = pace | (strategy.get("rollingUpdate") or {})
