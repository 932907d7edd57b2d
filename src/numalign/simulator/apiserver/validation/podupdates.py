"""Which fields of a pod may still change: images, a shorter deadline, more tolerations, fewer gates, and little else.

While gates hold a pod back, its node selector and node affinity may be narrowed too; that they only get narrower is not
checked. The real server adds to its refusal how its own structs differ; here it ends after the sentence."""

from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.trees import Tree

FREE: Final = ("containers", "initContainers", "activeDeadlineSeconds", "tolerations", "schedulingGates")
FREE_WHILE_GATED: Final = ("nodeSelector", "affinity")
ONLY_THESE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
COUNT: Final = "pod updates may not add or remove containers"
EMPTY: Final[tuple[object, ...]] = ({}, [], "", None)


def errors(spec: Tree, old: Tree) -> list[Cause]:
    if spec == old:
        return []
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(old.get(field) or ()):
            return [rules.forbidden(f"spec.{field}", COUNT)]
    found = [*_deadline(spec, old), *_gates(spec, old)]
    if not _tolerations_grow(spec, old) or _fixed(spec, old) != _fixed(old, old):
        found.append(rules.forbidden("spec", ONLY_THESE))
    return found


def _deadline(spec: Tree, old: Tree) -> Iterator[Cause]:
    now, before = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if before is None:
        return
    if now is None:
        yield rules.invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif now > before:
        yield rules.invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")


def _gates(spec: Tree, old: Tree) -> Iterator[Cause]:
    known = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield rules.forbidden(f"spec.schedulingGates[{index}].name", why)


def _tolerations_grow(spec: Tree, old: Tree) -> bool:
    now = [_patience_aside(each) for each in spec.get("tolerations") or ()]
    return all(_patience_aside(each) in now for each in old.get("tolerations") or ())


def _patience_aside(toleration: Tree) -> Tree:
    """For how long something is tolerated may change."""
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed(spec: Tree, old: Tree) -> Tree:
    """All that must stay as it is; what is empty is as good as absent."""
    free = (*FREE, *FREE_WHILE_GATED) if old.get("schedulingGates") else FREE
    rest = {field: value for field, value in spec.items() if field not in free and value not in EMPTY}
    for field in ("containers", "initContainers"):
        rest[field] = [
            {key: value for key, value in container.items() if key != "image" and value not in EMPTY}
            for container in spec.get(field) or ()
        ]
    return rest
