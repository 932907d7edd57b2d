"""Bound means bound: the outcome is what happened to the pod, even if the answer was lost."""

from typing import Any

import pytest

from numalign.api.objects.meta import ObjectMeta
from numalign.kube import binding
from numalign.kube.binding import BindingResult, Outcome
from numalign.kube.client import Client
from numalign.kube.transport.transport import Limits
from tests.unit.kube.clocks import HandClock, run
from tests.unit.kube.stub import Stub, access, once, serving
from tests.unit.kube.stubhttp import Reply, status
from tests.unit.kube.watching import pod


def web(uid: str = "u1", node: str = "") -> dict[str, Any]:
    made = pod("web", node)
    return made | {"metadata": made["metadata"] | {"uid": uid}}


def outcome(stub: Stub, annotations: dict[str, str] | None = None) -> tuple[BindingResult, Stub]:
    meta = ObjectMeta(name="web", namespace="default", uid="u1")

    async def check() -> BindingResult:
        async with serving(stub), Client(access(stub), Limits(call_seconds=0.3), clock=HandClock()) as client:
            return await binding.bind(client, meta, "n1", annotations or {})

    return run(check()), stub


def stubbed(thing: dict[str, Any] | None, *faults: Any) -> Stub:
    stub = Stub(faults=once(*faults))
    if thing is not None:
        stub.version += 1
        stub.objects["pods"] = {("default", "web"): thing}
        thing["metadata"]["resourceVersion"] = "101"
    return stub


class LosesAnswers(Stub):
    """Binds, and then the answer gets lost on its way."""

    def _about(self, plural: str, found: Any, part: str, asked: Any) -> Reply:
        reply = super()._about(plural, found, part, asked)
        return Reply(200, raw=b"", headers={"Content-Length": "7"}) if part == "binding" and reply.code < 300 else reply


BINDINGS: dict[str, tuple[Stub, Outcome]] = {
    "a free pod": (stubbed(web()), Outcome.DONE),
    "a pod that is not there": (stubbed(None), Outcome.GONE),
    "a pod on another node": (stubbed(web(node="n2")), Outcome.ELSEWHERE),
    "a pod we had bound before": (stubbed(web(node="n1")), Outcome.DONE),
    "a pod of that name made since": (stubbed(web("u2"), status(409, "Conflict", "uid")), Outcome.GONE),
    "a pod that waits at a gate": (stubbed(web(), status(409, "Conflict", "gated")), Outcome.REFUSED),
    "a call that is invalid": (stubbed(web(), status(422, "Invalid")), Outcome.REFUSED),
    "a call we may not make": (stubbed(web(), status(403, "Forbidden")), Outcome.REFUSED),
    "throttled, then free": (stubbed(web(), status(429, "TooManyRequests", retryAfterSeconds=1)), Outcome.DONE),
    "an internal error, then free": (stubbed(web(), status(500, "InternalError")), Outcome.DONE),
    "internal errors all the time": (stubbed(web(), *[status(500, "InternalError")] * 4), Outcome.REFUSED),
    "resets all the time": (stubbed(web(), *["reset"] * 4), Outcome.REFUSED),
    "silence, and the pod is still free": (stubbed(web(), "stall"), Outcome.REFUSED),
    "silence all the time": (stubbed(web(), "stall", "stall"), Outcome.UNKNOWN),
}


@pytest.mark.parametrize("stub, expected", BINDINGS.values(), ids=BINDINGS)
def test_the_outcome_of_binding(stub: Stub, expected: Outcome) -> None:
    answer, _ = outcome(stub)
    assert answer.outcome is expected
    assert bool(answer.why) is (expected is not Outcome.DONE)


def test_a_binding_whose_answer_is_lost_is_found_out() -> None:
    stub = LosesAnswers(objects={"pods": {("default", "web"): web() | {"metadata": web()["metadata"]}}})
    stub.objects["pods"]["default", "web"]["metadata"]["resourceVersion"] = "100"
    answer, _ = outcome(stub)
    assert answer.outcome is Outcome.DONE
    assert stub.objects["pods"]["default", "web"]["spec"]["nodeName"] == "n1"


def test_a_refused_last_attempt_does_not_decide_about_earlier_ones() -> None:
    answer, stub = outcome(stubbed(web(), "cut", status(403, "Forbidden")))
    assert answer.outcome is Outcome.DONE
    assert stub.objects["pods"]["default", "web"]["spec"]["nodeName"] == "n1"


def test_a_binding_names_the_pod_by_its_uid() -> None:
    _, stub = outcome(stubbed(web()))
    assert stub.asked[0].document["metadata"] == {"name": "web", "namespace": "default", "uid": "u1"}
    assert stub.asked[0].document["target"]["name"] == "n1"


@pytest.mark.parametrize(
    "fault", [status(429, "TooManyRequests", retryAfterSeconds=1), status(500, "InternalError"), "reset"]
)
def test_a_binding_that_is_not_wanted_any_more_is_not_sent_again(fault: Any) -> None:
    stub, chances = stubbed(web(), fault), iter((True,))

    async def check() -> BindingResult:
        async with serving(stub), Client(access(stub), clock=HandClock()) as client:
            meta = ObjectMeta(name="web", namespace="default", uid="u1")
            return await binding.bind(client, meta, "n1", wanted=lambda: next(chances, False))

    assert run(check()) == BindingResult(Outcome.UNKNOWN, "bind Pod default/web: no longer wanted")
    assert len(stub.asked) <= 1


def test_the_binding_carries_the_annotations() -> None:
    _, stub = outcome(stubbed(web()), annotations={"a": "b"})
    assert stub.asked[0].document["metadata"]["annotations"] == {"a": "b"}
