"""A pod gets its node: the one write that a scheduler lives by.

`api.Api.bind` and `POST pods/<name>/binding` call `bind`. A pod that is bound, gated or being deleted is refused with
the real server's words; the labels and annotations of the binding go over to the pod."""

from typing import Final

from msgspec import Struct

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.apiserver.verbs import update
from numalign.simulator.trees import Tree

SCHEDULED: Final = "PodScheduled"


class Binding(Struct, frozen=True):
    pod: str
    namespace: str
    node: str
    uid: str = ""
    version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def read(tree: Tree, pod: str, namespace: str) -> Binding:
    """From the body of a request for this pod."""
    metadata, target = trees.metadata(tree), tree.get("target") or {}
    if metadata.get("name") != pod:
        raise errors.bad_request("name in URL does not match name in Binding object")
    if target.get("kind") not in (None, "", "Node"):
        kind = target["kind"]
        raise StatusError(500, "", f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise StatusError(500, "", "target.name: Required value")
    return Binding(
        pod,
        namespace,
        target["name"],
        metadata.get("uid") or "",
        metadata.get("resourceVersion") or "",
        metadata.get("labels") or {},
        metadata.get("annotations") or {},
    )


def bind(state: State, binding: Binding, *, dry_run: bool = False) -> None:
    entry = state.entry(PODS, binding.pod, binding.namespace)
    old = trees.decoded(entry.data)
    _check(binding, old)
    if dry_run:
        return
    metadata = dict(old["metadata"])
    for name, added in (("labels", binding.labels), ("annotations", binding.annotations)):
        if added:
            metadata[name] = (metadata.get(name) or {}) | added
    new = old | {"metadata": metadata, "spec": old["spec"] | {"nodeName": binding.node}}
    status = old.get("status") or {}
    new["status"] = status | {"conditions": _scheduled(status.get("conditions") or [], state.clock.rfc3339())}
    state.store.commit(PODS, new, entry, old)


def _check(binding: Binding, pod: Tree) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    if binding.uid and binding.uid != metadata["uid"]:
        raise update.precondition_failed(PODS, pod, "UID", (binding.uid, metadata["uid"]))
    if binding.version and binding.version != metadata["resourceVersion"]:
        versions = (binding.version, metadata["resourceVersion"])
        raise update.precondition_failed(PODS, pod, "ResourceVersion", versions)
    if "deletionTimestamp" in metadata:
        raise _refused(binding, "is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(binding, f'is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(binding, "has non-empty .spec.schedulingGates")


def _refused(binding: Binding, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on pods/binding "{binding.pod}": pod {binding.pod} {why}'
    return StatusError(409, "Conflict", message, {"name": binding.pod, "kind": "pods/binding"})


def _scheduled(conditions: list[Tree], now: str) -> list[Tree]:
    made = {"type": SCHEDULED, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    known = next((each for each in conditions if each.get("type") == SCHEDULED), None)
    if known is None:
        return [*conditions, made]
    if known.get("status") == "True":
        made["lastTransitionTime"] = known.get("lastTransitionTime")
    return [made if each is known else each for each in conditions]
