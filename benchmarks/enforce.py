"""How long does the agent take to answer the container runtime on a full node in direct mode?

110 pods with a container each run, half of them with CPUs of their own, on 256 CPUs. Containers come and go; every
request and its answer pass through the wire's encoding. The peer is the limit: 20 ms for 99 of 100 answers, a hundredth
of the time after which a runtime drops a plugin. Seconds are those of this process's CPU time."""

import time
from collections.abc import Iterator

from benchmarks import table
from numalign.agent.enforce import messages
from numalign.agent.enforce.messages import Update
from numalign.agent.enforce.pools import NodeCPUs
from numalign.agent.enforce.session import Session
from numalign.agent.enforce.state import NodeState
from numalign.api.attributes import directresult
from numalign.api.attributes.directresult import ContainerResult, DirectResult
from numalign.api.decode import cpuset, protobuf
from numalign.api.decode.protobuf import TEXTS, Message, MessageField, Tree

PODS = 110
ZONES = 8
CPUS = 256
ROUNDS = 10
LIMIT = 0.020
GOAL = 1.0
SANDBOX: Message = {**messages.SANDBOX, 6: MessageField("annotations", TEXTS, many=True)}
SUBJECT: Message = {1: MessageField("pod", SANDBOX), 2: MessageField("container", messages.CONTAINER)}


def rows() -> Iterator[table.Row]:
    seconds = sorted(_answers())
    worst = seconds[int(len(seconds) * 0.99)]
    yield table.Row(
        name=f"NRI answers with {PODS} pods, 99th percentile",
        ours=worst * 1e3,
        peer=LIMIT * 1e3,
        unit="ms",
        goal=GOAL,
        higher_is_better=False,
    )


def _answers() -> Iterator[float]:
    state = NodeState("node")
    width = CPUS // ZONES
    state.configure(
        NodeCPUs({zone: cpuset.parse(f"{zone * width}-{zone * width + width - 1}") for zone in range(ZONES)}), {}
    )
    session = Session(state, None, lambda: 0.0, lambda: None)
    for number in range(PODS * ROUNDS):
        yield _answer(session, "RunPodSandbox", number)
        yield _answer(session, "CreateContainer", number)
        _flush(state)
        yield _answer(session, "PostStartContainer", number)
        if number >= PODS:
            yield _answer(session, "StopContainer", number - PODS)
            yield _answer(session, "StopPodSandbox", number - PODS)
            _flush(state)


def _flush(state: NodeState) -> None:
    for change in state.changes():
        assert isinstance(change.update, Update)
        state.accepted(change)


def _answer(session: Session, method: str, number: int) -> float:
    request = protobuf.encode_message(_subject(number), SUBJECT)
    began = time.process_time()
    session.answer(f"{messages.PLUGIN}/{method}", request)
    return time.process_time() - began


def _subject(number: int) -> Tree:
    uid, place = f"uid-{number}", number % PODS
    annotations: dict[str, str] = {}
    if place % 2:
        own = ContainerResult(name="main", cpuset=f"{2 * place}-{2 * place + 1}", zones=(2 * place * ZONES // CPUS,))
        result = DirectResult(version=1, uid=uid, node="node", containers=(own,), cpuset=own.cpuset)
        annotations[directresult.RESULT] = directresult.encode(result)
    pod = {"id": f"box-{number}", "uid": uid, "name": uid, "annotations": protobuf.entries(annotations)}
    return {"pod": pod, "container": {"id": f"c-{number}", "sandbox": f"box-{number}", "name": "main", "pid": 1}}
