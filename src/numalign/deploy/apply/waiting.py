"""Waits until objects are as they should be, or gone, and says how they are meanwhile.

`applying` and `removing` use it between steps, the command line at the end. It polls: an installation has a few dozen
objects, and a watch for each kind would need more rights than a get. Time comes from the client's clock."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from numalign.deploy import podtroubles
from numalign.deploy.apply import objects, readiness
from numalign.deploy.apply.objects import Ref, Tree
from numalign.deploy.apply.readiness import Readiness
from numalign.deploy.apply.server import Server
from numalign.deploy.podtroubles import WatchedPod
from numalign.kube import errors, lists
from numalign.kube.request import Selection
from numalign.kube.resources import TOPOLOGIES

FIRST: Final = 0.1
LONGEST: Final = 2.0
"""Seconds between two looks."""
COMPONENT: Final = "app.kubernetes.io/component"
AGENT: Final = "agent"
WORKLOADS: Final = ("Deployment", "DaemonSet")

Say = Callable[[str], None]


class Standing(Struct, frozen=True):
    """How an object of the installation is; `object` may also name the reports of an agent."""

    object: str
    ready: bool
    words: str
    failed: bool = False


class TimedOut(Exception):
    """What was waited for did not come in time; `left` is what is missing."""

    def __init__(self, left: Sequence[Standing]) -> None:
        super().__init__("; ".join(f"{each.object}: {each.words}" for each in left))
        self.left = tuple(left)


class Failed(TimedOut):
    """It will not come, however long one waits."""


class Pace:
    """Looks often at first, later less often, until a deadline."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._clock = server.clock
        self._until = self._clock.now() + seconds
        self._pause = FIRST

    async def next(self) -> bool:
        """Pauses; False where the time is up."""
        left = self._until - self._clock.now()
        if left <= 0:
            return False
        await self._clock.sleep(min(self._pause, left))
        self._pause = min(self._pause * 1.5, LONGEST)
        return True


async def ready(server: Server, refs: Sequence[Ref], seconds: float, say: Say, *, with_reports: bool = True) -> None:
    """Until all objects are ready and, on the nodes of the agents, all reports fresh. Raises TimedOut or Failed."""
    pace, said = Pace(server, seconds), ""
    while True:
        found = await standing(server, refs, with_reports=with_reports, briefly=True)
        left = [each for each in found if not each.ready]
        if not left:
            return
        if any(each.failed for each in left):
            raise Failed([each for each in left if each.failed])
        words = f"{left[0].object}: {left[0].words}" + (f" (and {len(left) - 1} more)" if len(left) > 1 else "")
        if words != said:
            say(words)
            said = words
        if not await pace.next():
            raise TimedOut(left)


async def standing(
    server: Server, refs: Iterable[Ref], *, with_reports: bool = True, briefly: bool = False
) -> list[Standing]:
    """How the objects are, in their order, and after each agent its reports. Pods and reports of a large cluster are
    many megabytes: a caller that asks again and again asks `briefly`, for reports of ready agents and a page of pods.
    """
    ordered = list(refs)
    found = []
    for which, tree in zip(ordered, await server.all(ordered, server.get), strict=True):
        now = readiness.state(tree)
        why = "" if tree is None or now.ready else await troubles(server, tree, briefly=briefly)
        found.append(Standing(str(which), now.ready, "; ".join(filter(None, (now.words, why))), now.failed))
        if with_reports and tree is not None and is_agent(tree) and (now.ready or not briefly):
            reported = await reports(server, tree)
            found.append(Standing(f"reports of {which}", reported.ready, reported.words))
    return found


def is_agent(tree: Tree) -> bool:
    return tree.get("kind") == "DaemonSet" and objects.at(tree, "metadata", "labels", COMPONENT) == AGENT


async def reports(server: Server, daemonset: Tree) -> Readiness:
    """Whether each node with a pod of the DaemonSet has a fresh report."""
    try:
        nodes = await agent_nodes(server, daemonset)
        listed = await server.every(TOPOLOGIES.api_version, TOPOLOGIES.kind)
    except errors.Forbidden as problem:
        return Readiness(ready=False, words=f"cannot be read: {problem}", failed=True)
    by_node = {each["metadata"]["name"]: each for each in listed}
    return readiness.reports(nodes, by_node, server.clock.wall()).state()


async def troubles(server: Server, tree: Tree, *, briefly: bool) -> str:
    """Why pods of a workload do not become ready, as far as that can be seen; empty for other objects."""
    if tree.get("kind") not in WORKLOADS:
        return ""
    target = podtroubles.PODS.within(tree["metadata"]["namespace"])
    found: list[WatchedPod] = []
    try:
        async for page in server.client.pages(target, podtroubles.its_pods(tree)):
            found += lists.readable(page.items)
            if briefly:
                break
        return podtroubles.troubles(found) if found else await _uncreated(server, tree)
    except errors.Forbidden:
        return ""


async def _uncreated(server: Server, workload: Tree) -> str:
    """Why a workload has no pods: the controller writes it into Events, and for a DaemonSet nowhere else."""
    meta = workload["metadata"]
    selection = Selection(fields=f"involvedObject.uid={meta['uid']},reason=FailedCreate")
    events = await server.every("v1", "Event", meta["namespace"], selection)
    last = max(events, key=lambda each: str(each.get("lastTimestamp") or ""), default={})
    return podtroubles.refused(str(last.get("message") or "")) if last else ""


async def agent_nodes(server: Server, daemonset: Tree) -> list[str]:
    meta = daemonset["metadata"]
    pods = await server.every("v1", "Pod", meta["namespace"], podtroubles.its_pods(daemonset))
    return [objects.at(pod, "spec", "nodeName") or _intended(pod) for pod in pods if _is_of(pod, meta["uid"])]


def _is_of(pod: Tree, uid: str) -> bool:
    owners = objects.at(pod, "metadata", "ownerReferences") or ()
    return any(each.get("uid") == uid for each in owners) and not objects.at(pod, "metadata", "deletionTimestamp")


def _intended(pod: Tree) -> str:
    """A pod that waits for its node names it in its affinity."""
    path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = (objects.at(pod, *path) or {}).get("nodeSelectorTerms") or ()
    names = [value for term in terms for each in term.get("matchFields") or () for value in each.get("values") or ()]
    return str(names[0]) if names else "a node that is not known yet"


async def gone(server: Server, uids: dict[Ref, str], seconds: float) -> list[Ref]:
    """The objects that are still there when the time is up; one of another uid is a new object."""
    pace, left = Pace(server, seconds), list(uids)
    while True:
        found = await server.all(left, server.get)
        left = [
            which for which, tree in zip(left, found, strict=True) if tree and tree["metadata"]["uid"] == uids[which]
        ]
        if not left or not await pace.next():
            return left
