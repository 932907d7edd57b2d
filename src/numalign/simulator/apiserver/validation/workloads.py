"""Validates workloads: selectors, pod templates, counts and update strategies.

`kinds` calls one function for each kind, after defaulting."""

from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.defaults.workloads import CONTROLLER_UID
from numalign.simulator.apiserver.storage import labelselectors
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.validation import pods, rules
from numalign.simulator.trees import Tree

NO_MATCH: Final = "`selector` does not match template `labels`"
STRATEGIES: Final = ("Recreate", "RollingUpdate")
DAEMON_STRATEGIES: Final = ("RollingUpdate", "OnDelete")
JOB_RESTARTS: Final = ("OnFailure", "Never")


def deployment(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree["spec"]
    yield from rules.not_negative(spec, "replicas")
    yield from _selected(tree, "deployment")
    yield from _strategy(spec.get("strategy") or {})
    yield from rules.not_negative(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline, wait = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
    if deadline is not None and 0 <= deadline <= wait:
        yield rules.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from _same_selector(tree, old)


def replica_set(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    yield from rules.not_negative(tree["spec"], "replicas", "minReadySeconds")
    yield from _selected(tree, "deployment")
    yield from _same_selector(tree, old)


def stateful_set(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    yield from rules.not_negative(tree["spec"], "replicas", "minReadySeconds")
    yield from _selected(tree, "statefulset")
    if old is not None:
        yield from rules.unchanged("spec.serviceName", tree["spec"].get("serviceName"), old["spec"].get("serviceName"))
    yield from _same_selector(tree, old)


def daemon_set(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree["spec"]
    yield from _selected(tree, "daemonset")
    yield from rules.not_negative(spec, "minReadySeconds", "revisionHistoryLimit")
    kind = (spec.get("updateStrategy") or {}).get("type")
    if kind not in DAEMON_STRATEGIES:
        yield rules.unsupported("spec.updateStrategy", {"Type": kind, "RollingUpdate": None}, DAEMON_STRATEGIES)
    yield from _same_selector(tree, old)


def _selected(tree: Tree, noun: str) -> Iterator[StatusCause]:
    """The selector must exist, be non-empty and match the labels of the template; the template must be valid."""
    spec = tree["spec"]
    selector = spec.get("selector")
    problems = rules.label_selector(selector or {}, "spec.selector")
    yield from problems
    if selector is None and noun != "daemonset":
        yield rules.required("spec.selector")
    elif selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield rules.invalid("spec.selector", {}, f"empty selector is invalid for {noun}")
    if problems:
        yield rules.invalid("spec.selector", selector, "invalid label selector")
    yield from _template(spec, selector, problems)
    restart = spec["template"]["spec"].get("restartPolicy")
    if restart != "Always":
        yield rules.unsupported("spec.template.spec.restartPolicy", restart, ("Always",))


def _template(spec: Tree, selector: Tree | None, problems: list[StatusCause]) -> Iterator[StatusCause]:
    labels = spec["template"]["metadata"].get("labels")
    says_something = selector is None or selector.get("matchLabels") or selector.get("matchExpressions")
    # An empty selector matches no template, but it has already been reported.
    if not problems and says_something and not labelselectors.selects(selector, labels or {}):
        yield rules.invalid("spec.template.metadata.labels", labels, NO_MATCH)
    yield from rules.label_map("spec.template.labels", labels)
    yield from pods.spec_errors(spec["template"]["spec"], "spec.template.spec")


def _strategy(strategy: Tree) -> Iterator[StatusCause]:
    kind, pace = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in STRATEGIES:
        yield rules.unsupported("spec.strategy", {"Type": kind, "RollingUpdate": pace}, STRATEGIES)
    elif kind == "Recreate" and pace is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield rules.forbidden("spec.strategy.rollingUpdate", why)
    elif pace is not None:
        here = "spec.strategy.rollingUpdate"
        yield from rules.int_or_percent(f"{here}.maxUnavailable", pace.get("maxUnavailable"), at_most_all=True)
        yield from rules.int_or_percent(f"{here}.maxSurge", pace.get("maxSurge"))
        if pace.get("maxUnavailable") in (0, "0%") and pace.get("maxSurge") in (0, "0%"):
            yield rules.invalid(f"{here}.maxUnavailable", pace["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


def _same_selector(tree: Tree, old: Tree | None) -> list[StatusCause]:
    if old is None:
        return []
    return rules.unchanged("spec.selector", tree["spec"].get("selector"), old["spec"].get("selector"))


def job(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree["spec"]
    counts = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from rules.not_negative(spec, *counts)
    yield from rules.one_of("spec.completionMode", spec.get("completionMode"), ("NonIndexed", "Indexed"))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield rules.required("spec.completions", "when completion mode is Indexed")
    if not spec.get("manualSelector") and old is None:
        generated = {"matchLabels": {CONTROLLER_UID: tree["metadata"].get("uid", "")}}
        if spec.get("selector") != generated:
            yield rules.invalid("spec.selector", spec.get("selector"), "`selector` not auto-generated")
    yield from _template(spec, spec.get("selector"), [])
    yield from _job_restart(spec["template"]["spec"].get("restartPolicy"))
    if old is not None:
        yield from _job_update(spec, old["spec"])


def _job_restart(policy: str) -> Iterator[StatusCause]:
    here = "spec.template.spec.restartPolicy"
    if policy == "Always":
        yield rules.required(here, 'valid values: "OnFailure", "Never"')
    else:
        yield from rules.one_of(here, policy, JOB_RESTARTS)


def _job_update(spec: Tree, old: Tree) -> Iterator[StatusCause]:
    if spec.get("completionMode") != "Indexed":
        yield from rules.unchanged("spec.completions", spec.get("completions"), old.get("completions"))
    for field in ("selector", "template", "completionMode"):
        # The real server lets a suspended job that never started change its scheduling fields; this one does not.
        yield from rules.unchanged(f"spec.{field}", spec.get(field), old.get(field))
