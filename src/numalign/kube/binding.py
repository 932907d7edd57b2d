"""Binds pods, with the outcome as a value.

`scheduler.bind` calls it. If an answer is lost, the pod is read, so that BOUND means bound and REFUSED means not bound
(kube-scheduler spec 4.9 and 7.4)."""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kube import errors, request
from numalign.kube.client import Client
from numalign.kube.request import Repeat
from numalign.kube.resources import PODS, Binding, NodeTarget, Target
from numalign.kube.transport.transport import Wanted, always


class Outcome(enum.Enum):
    DONE = "done"
    GONE = "the pod is gone, or another one has its name"
    REFUSED = "the server refused; the pod is unchanged"
    ELSEWHERE = "the pod is bound to another node"
    UNKNOWN = "no answer, and the pod could not be read"


class BindingResult(Struct, frozen=True):
    outcome: Outcome
    why: str = ""
    """The server's message; empty if done."""


DONE: Final = BindingResult(Outcome.DONE)
NOTHING_TO_SAY: Final[Mapping[str, str]] = MappingProxyType({})


async def bind(
    client: Client,
    pod: ObjectMeta,
    node: str,
    annotations: Mapping[str, str] = NOTHING_TO_SAY,
    *,
    wanted: Wanted = always,
) -> BindingResult:
    """Never raises for a failure of the server or the network. The server merges the annotations into the pod's.
    `wanted` is called before every attempt; once it returns False, the outcome of earlier attempts is unknown."""
    target = PODS.at(pod.name, pod.namespace)
    named = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid, annotations=dict(annotations))
    # A repeated binding is refused; then the pod is read.
    asked = request.post("bind", target.sub("binding"), Binding(named, NodeTarget(node)), Repeat.ALWAYS)
    tries = _Tries(wanted)
    try:
        await client.sender.call(asked, tries.leaves)
        return DONE
    except errors.Withdrawn as problem:
        return BindingResult(Outcome.UNKNOWN, str(problem))
    except errors.NotFound as problem:
        return BindingResult(Outcome.GONE, str(problem))
    except (errors.Refusal, errors.Unreachable) as problem:
        refused = BindingResult(Outcome.REFUSED, str(problem))
        in_doubt = tries.may_have_worked(problem)
        return await _looked_up(client, target, (pod.uid, node), refused) if in_doubt else refused


class _Tries:
    """Counts how often a call was sent: the answer to the last attempt says nothing about earlier ones."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._sent = 0

    def leaves(self) -> bool:
        wanted = self._wanted()
        self._sent += wanted
        return wanted

    def may_have_worked(self, problem: errors.Refusal | errors.Unreachable) -> bool:
        doubtful = isinstance(problem, errors.Unreachable | errors.Conflict | errors.ServerFailure)
        return self._sent > (0 if doubtful else 1)


async def _looked_up(
    client: Client, target: Target[Pod], wanted: tuple[str, str], refused: BindingResult
) -> BindingResult:
    """Reads the pod, for a binding whose answer does not show whether it is bound."""
    uid, node = wanted
    try:
        pod = await client.get(target)
    except errors.NotFound as problem:
        return BindingResult(Outcome.GONE, str(problem))
    except errors.KubeError as problem:
        return BindingResult(Outcome.UNKNOWN, f"{refused.why}; then {problem}")
    if uid and pod.metadata.uid != uid:
        return BindingResult(Outcome.GONE, refused.why)
    if pod.spec.node_name == node:
        return DONE
    return BindingResult(Outcome.ELSEWHERE, refused.why) if pod.spec.node_name else refused
