"""Whatever is sent to our servers and plugins is answered or refused: questions of kube-scheduler and of
cluster-autoscaler, messages of the container runtime, objects of Koordinator and Kueue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from numalign.agent.enforce import messages, wire
from numalign.agent.enforce.session import Session
from numalign.agent.enforce.state import NodeState
from numalign.api.attributes import directresult
from numalign.api.decode import decode, protobuf
from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.api.nrt import wire as nrt
from numalign.api.objects.koordinatordevice import DeviceObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.kube.clock import Clock
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.settings import Settings
from numalign.process.http.messages import Request
from numalign.process.rpc import CallFailed
from numalign.scheduler import main
from numalign.scheduler.capacity import expandermessages, templates
from numalign.scheduler.capacity.expander import Expander
from numalign.scheduler.capacity.messages import CapacityRequest
from numalign.scheduler.capacity.service import SERVED, CapacityService
from numalign.scheduler.extender.protocol import BindingArgs
from numalign.scheduler.http.extenderserver import ExtenderServer, questions
from numalign.scheduler.intake.devicereports import DeviceReports
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.provisioning import answers, kinds
from tests.fuzz import campaign
from tests.fuzz.campaign import COUNTS, Target, text
from tests.strategies import hostile
from tests.unit.agent.enforce import nodes
from tests.unit.agent.enforce.test_wire import Line, frame, message
from tests.unit.placement.test_engine import report
from tests.unit.scheduler import servers
from tests.unit.scheduler.capacity import test_expander as groups
from tests.unit.scheduler.capacity.test_service import GUARANTEED, cluster
from tests.unit.scheduler.extender.test_extender import Asked

TRAINER: Any = json.loads(encode(servers.trainer("p", gpus=2)))
NOW = datetime(2026, 11, 19, tzinfo=UTC)


def _json(*trees: Any) -> tuple[bytes, ...]:
    return tuple(map(msgspec.json.encode, trees))


# kube-scheduler


def extender() -> Callable[[str, bytes], None]:
    asked = Asked("a", "b")
    profiles = {"default-scheduler": asked.servers.profile}
    server = ExtenderServer(
        asked.extender,
        Metrics(),
        cast(Clock, SimpleNamespace(now=lambda: 1.0)),
        questions(asked.servers.cluster, profiles, main.defaults()),
        is_synced=lambda: True,
    )

    def answered(path: str, raw: bytes) -> None:
        answer = server.answer(Request("POST", path.encode(), {}, raw))
        assert getattr(answer, "code", None) in (200, 400), "and not 500"
        if cast(Any, answer).code == 400:
            raise BadObject("request", "", "", cast(Any, answer).body.decode())

    return answered


ARGUMENTS = _json(
    {"Pod": TRAINER, "NodeNames": ["a", "b"]},
    {"Pod": TRAINER, "Nodes": {"items": [json.loads(encode(servers.node(name))) for name in ("a", "new")]}},
    {"Pod": hostile.POD, "NodeNames": ["a", "b", "c"]},
)
VICTIMS = _json(
    {"Pod": TRAINER, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "uid-q"}], "NumPDBViolations": 0}, "b": None}},
    {"Pod": TRAINER, "NodeNameToVictims": {"a": {"Pods": [json.loads(encode(servers.trainer("q")))]}}},
)


# Capacity, and cluster-autoscaler


def capacity() -> Callable[[bytes], object]:
    known = cluster(a=8, b=8, c=16)
    service = CapacityService(known.cluster, {known.profile.name: known.profile}, main.defaults(), SERVED)
    return lambda raw: encode(asyncio.run(service.answer(decode.decode(CapacityRequest, raw))))


CAPACITY = _json(
    {
        "shapes": [
            {"name": "six", "requests": GUARANTEED, "replicas": 3},
            {"pod": TRAINER},
            {"spec": TRAINER["spec"]},
        ],
        "nodes": {"names": ["a", "b"], "selector": {"matchLabels": {"x": "y"}}},
        "allOrNothing": True,
    },
    {
        "shapes": [{"requests": GUARANTEED}],
        "templates": [
            {"machine": "2x16", "kubelet": {"topologyManagerPolicy": "restricted", "reservedSystemCPUs": "0-1"}},
            {"name": "t", "topology": json.loads(encode(normalise.encode(report("t", cpus=(8, 8)))))},
        ],
    },
)
MACHINE = protobuf.encode_message(
    {
        "metadata": {
            "name": "m",
            "annotations": protobuf.entries(
                {templates.MACHINE: "2x16", templates.KUBELET: '{"topologyManagerPolicy":"restricted"}'}
            ),
        },
        "status": {"allocatable": groups.amounts(cpu="16", memory="64Gi", pods="110")},
    },
    expandermessages.NODE,
)
OPTIONS = (
    groups.request({"wide": groups.WIDE}, {"wide": 2}, groups.SIXES),
    groups.request({"wide": groups.WIDE}, {"wide": 2}, groups.SIXES, typed=True),
    groups.request({"m": MACHINE}, {"m": 1}, groups.SIXES),
)


def expander() -> Callable[[bytes], object]:
    known = Expander(cluster(a=8).cluster, Settings())

    def answered(raw: bytes) -> None:
        found = asyncio.run(known.best_options(expandermessages.decode_request(raw)))
        expandermessages.encode_response([(each.option, each.says) for each in found])

    return answered


# The container runtime, and decisions for it

POD = nodes.sandbox("p", nodes.own("main", "1-3", (0,)), nodes.own("side"))
BOX = protobuf.encode_message(
    {
        "id": POD.id,
        "uid": POD.uid,
        "name": POD.name,
        "namespace": POD.namespace,
        "annotations": protobuf.entries(POD.annotations),
    },
    messages.SANDBOX,
)
CONTAINER = protobuf.encode_message(
    {
        "id": "c1",
        "sandbox": POD.id,
        "name": "main",
        "state": messages.RUNNING,
        "pid": 77,
        "linux": {"resources": {"cpu": {"cpus": "0-7", "mems": "0", "quota": {"value": 1000}}}},
    },
    messages.CONTAINER,
)
SUBJECT = protobuf.encode_message({"pod": BOX, "container": CONTAINER}, messages.SUBJECT)
REQUESTS = {
    "Synchronize": protobuf.encode_message({"pods": [BOX], "containers": [CONTAINER]}, messages.SYNCHRONIZE),
    "Configure": protobuf.encode_message({"runtime": "containerd", "version": "2"}, messages.CONFIGURE),
}
CALL = protobuf.encode_message(
    {"service": messages.PLUGIN, "method": "CreateContainer", "payload": SUBJECT}, wire.REQUEST
)
FRAMES = frame(1, message(1, 1, CALL)) + frame(2, message(2, 2, b"")) + frame(1, message(3, 1, CALL))


def state() -> NodeState:
    made = NodeState(nodes.NODE)
    made.configure(nodes.TWO_ZONES, {})
    return made


def session() -> Session:
    return Session(state(), None, lambda: 1.0, lambda: None)


def asked_by_the_runtime(method: str) -> Callable[[bytes], object]:
    answering = session()
    return lambda raw: answering.answer(f"{messages.PLUGIN}/{method}", raw)


def connected(raw: bytes) -> None:
    async def fed() -> None:
        trunk = wire.Trunk(
            serves=messages.PLUGIN_CONNECTION, calls=messages.RUNTIME_CONNECTION, answer=session().answer
        )
        trunk.connection_made(Line())
        for at in range(0, len(raw), 97):
            trunk.data_received(raw[at : at + 97])
        trunk.connection_lost(None)

    asyncio.run(fed())


DECISION: Any = json.loads(nodes.decision(POD.uid, nodes.own("main", "1-3", (0,), "0"), nodes.own("side")))
DECISION["containers"][0] |= {
    "resources": {"0": {"cpu": "2"}},
    "devices": {"nvidia.com/gpu": [{"minor": 0, "id": "x", "resources": {"a": "1"}, "extension": {"vfs": []}}]},
}


def decided(raw: bytes) -> None:
    """As the agent takes it in: a decision that cannot be read is the pod's problem."""
    made = state()
    pod = messages.Sandbox(id="b", uid=POD.uid, namespace="d", name="p", annotations={directresult.RESULT: text(raw)})
    made.pod_started(pod)
    made.create(pod, nodes.made(pod, "main"), 1.0)
    made.changes()
    assert list(made.applied) is not None
    assert list(made.failures) is not None


# Koordinator and Kueue

DIRECT = nrt.decode(
    json.dumps({"metadata": {"name": "t"}, "attributes": [{"name": "numalign.io/mode", "value": "direct"}]}).encode()
)
DEVICE = {
    "metadata": {"name": "t", "labels": {"a": "b"}, "annotations": {}},
    "spec": {
        "devices": [
            {
                "type": "gpu",
                "minor": 0,
                "id": "G0",
                "health": True,
                "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi"},
                "topology": {"socketID": 0, "nodeID": 0, "pcieID": "0", "busID": "00:01"},
                "vfGroups": [{"labels": {"a": "b"}, "vfs": [{"minor": 0, "busID": "x"}]}],
                "labels": {"x": "y"},
            }
        ]
    },
}
PROVISIONING = {
    "metadata": {"name": "r", "namespace": "d", "uid": "u", "creationTimestamp": "2026-11-01T10:00:00Z"},
    "spec": {
        "provisioningClassName": "c",
        "podSets": [{"podTemplateRef": {"name": "t"}, "count": 3}],
        "parameters": {"ValidUntilSeconds": "7", "noRetry": "true"},
    },
    "status": {
        "conditions": [
            {
                "type": "Provisioned",
                "status": "True",
                "reason": "x",
                "message": "m",
                "lastTransitionTime": "2026-11-01T10:00:00Z",
                "observedGeneration": 1,
            }
        ]
    },
}


def devices(raw: bytes) -> None:
    """As the scheduler puts the object into the report of its node."""
    known = DeviceReports()
    found = known.device(decode.decode(DeviceObject, raw), known.report(DIRECT))
    if found is not None:
        engine = Engine()
        engine.apply(NodeSeen(Node(metadata=ObjectMeta(name="t"))))
        engine.apply(ReportSeen(normalise.normalise(found), 0.0))
        engine.view("t")


def provisioning(raw: bytes) -> None:
    request = decode.decode(kinds.ProvisioningRequest, raw)
    answers.retries(request)
    answers.state(request, answers.Terms(class_name="c"), NOW)
    answers.written(request, answers.found("x"), "now")


UNREADABLE = (BadObject, protobuf.BadProtobuf)
PATHS = ("/choose", "/filter", "/prioritize", "/simulate/filter", "/simulate/prioritize")
TARGETS: Mapping[str, Callable[[], Target]] = {
    **{
        f"extender {path}": lambda path=path: Target(  # type: ignore[misc]
            partial(extender(), path), ARGUMENTS, share=0.2, in_parts=True
        )
        for path in PATHS
    },
    "extender /preempt": lambda: Target(partial(extender(), "/preempt"), VICTIMS, share=0.2, in_parts=True),
    "extender /bind": lambda: Target(
        lambda raw: decode.decode(BindingArgs, raw),
        _json({"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "a"}),
        in_parts=True,
    ),
    "capacity": lambda: Target(capacity(), CAPACITY, share=0.1, in_parts=True),
    "expander": lambda: Target(expander(), OPTIONS, UNREADABLE, share=0.2),
    **{
        f"NRI {method}": lambda method=method: Target(  # type: ignore[misc]
            asked_by_the_runtime(method), [REQUESTS.get(method, SUBJECT)], (protobuf.BadProtobuf, CallFailed), 0.1
        )
        for method in session().answers
    },
    "ttrpc": lambda: Target(connected, [FRAMES], share=0.2, tolerant=True),
    "decision annotation": lambda: Target(decided, _json(DECISION), share=0.4, tolerant=True, in_parts=True),
    "Device": lambda: Target(devices, _json(DEVICE), share=0.2, in_parts=True),
    "ProvisioningRequest": lambda: Target(provisioning, _json(PROVISIONING), in_parts=True),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_sent_to_our_servers_is_answered_or_refused(name: str, count: int) -> None:
    campaign.read_or_refused(name, TARGETS[name](), count)
