"""Any history of facts and rounds: look-ups follow from the history alone, and no node is stuck at its end."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches import podgroups
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.repairs import ALL, NONE, Repair
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import InformerMode
from tests.campaigns import holds_for
from tests.unit.placement.reference.caches import made

NODES = ("n", "m")
PHASES = ("Running", "Pending", "Succeeded")
SETTINGS: tuple[dict[str, str], ...] = ({}, {made.SCOPE: "pod"})


class Event(NamedTuple):
    """Something that happens to a node; `number` names a pod, a phase or an amount, as the kind needs it."""

    kind: str
    node: str
    number: int


KINDS = ("reserve", "unreserve", "rejected", "foreign", "listed", "unlisted", "changed", "added", "gone", "round")


def histories() -> SearchStrategy[list[Event]]:
    event = st.builds(Event, st.sampled_from(KINDS), st.sampled_from(NODES), st.integers(0, 8))
    return st.lists(event, max_size=25)


class World:
    """A cluster and its cache, and beside the cache what the definition makes of the same history."""

    def __init__(self, rules: Rules) -> None:
        self.reports: dict[str, NodeResourceTopology] = {"n": made.report("n")}
        self.pods: dict[str, Pod] = {}
        self.cache = OverReserve(rules, self.reports.values())
        self.cached = dict(self.reports)
        self.charged: dict[str, dict[str, Pod]] = {node: {} for node in NODES}

    def take(self, event: Event) -> None:
        kind, node, number = event
        match kind:
            case "reserve" | "unreserve":
                pod = made.pod(f"p{number}", node="", phase="Pending", requests={"cpu": str(number % 3)})
                getattr(self.cache, kind)(node, pod)
                self._charge(kind, node, pod)
            case "rejected":
                self.cache.rejected(node)
            case "foreign":
                self.cache.pod_seen(made.pod(f"f{number}", node=node, scheduler="another"))
            case "listed":
                self.pods[f"p{number}"] = made.pod(f"p{number}", node=node, phase=PHASES[number % 3])
            case "unlisted":
                self.pods.pop(f"p{number}", None)
            case "gone":
                self.cache.nrt_gone(node)
                for known in (self.reports, self.cached):
                    known.pop(node, None)
                self.charged[node].clear()
            case "changed" | "added":
                self._report(node, number)
            case "round":
                self.round()

    def round(self) -> tuple[str, ...]:
        refreshed = self.cache.resync(self.reports, self.pods.values(), now=0.0)
        for node in refreshed:
            kept = self.charged[node].items()
            self.charged[node] = {name: pod for name, pod in kept if self._is_pending(name, node)}
        self.cached = self.reports | self.cached | {node: self.reports[node] for node in refreshed}
        return refreshed

    def look_up(self, node: str) -> list[str]:
        """By the definition: the report of the last refresh, less what is charged, in every zone."""
        wanted = sum(pod.spec.containers[0].resources.requests["cpu"].value for pod in self.charged[node].values())
        zones = self.cached[node].zones or () if node in self.cached else ()
        return [str(max(0, int(str(zone.resources[0].available)) - wanted)) for zone in zones]

    def _charge(self, kind: str, node: str, pod: Pod) -> None:
        if kind == "unreserve":
            self.charged[node].pop(pod.metadata.name, None)
        elif node in self.cached:
            self.charged[node][pod.metadata.name] = pod

    def _report(self, node: str, number: int) -> None:
        is_new = node not in self.reports
        plain = made.report(node, zones=[{"cpu": str(number)}], attributes=SETTINGS[number % 2])
        self.reports[node] = made.signed(plain, self.running(node))
        self.cached.setdefault(node, self.reports[node])
        (self.cache.nrt_added if is_new else self.cache.nrt_changed)(self.reports[node])

    def running(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name == node and pod.status.phase == "Running"]

    def _is_pending(self, name: str, node: str) -> bool:
        pod = self.pods.get(name)
        return pod is not None and pod.spec.node_name == node and pod.status.phase == "Pending"


def played(history: Sequence[Event], rules: Rules) -> World:
    world = World(rules)
    for event in history:
        world.take(event)
    return world


@holds_for(histories(), examples=150)
def test_a_look_up_is_the_report_less_what_was_reserved_since(history: list[Event]) -> None:
    world = played(history, Rules())
    for node in set(NODES) - world.cache.marks.foreign.keys():
        assert made.free(world.cache, node=node) == world.look_up(node)


def publishers(world: World, node: str) -> Iterator[list[Pod]]:
    """The pods that agents sign: those that run, with those that are starting, with those that have ended."""
    bound = [pod for pod in world.pods.values() if pod.spec.node_name == node]
    for phases in (["Running"], ["Running", "Pending"], ["Running", "Succeeded"], list(PHASES)):
        yield [pod for pod in bound if pod.status.phase in phases]


@holds_for(histories(), st.integers(0, 3), examples=150)
def test_a_current_report_of_any_publisher_ends_every_wait(history: list[Event], publisher: int) -> None:
    world = played(history, Rules())
    for node in world.reports:
        signed = list(publishers(world, node))[publisher]
        world.reports[node] = made.signed(made.report(node, zones=[{"cpu": "5"}]), signed)
    world.round()
    world.round()
    assert set(world.cache.desynced().maybe_over_reserved) <= set(NODES) - world.reports.keys()
    assert world.cache.desynced().settings_changed == ()
    assert all(world.cache.look_up(node).fresh for node in NODES)


@holds_for(histories(), st.sampled_from(InformerMode), examples=100)
def test_a_round_of_halves_is_a_round(history: list[Event], mode: InformerMode) -> None:
    rules = Rules(is_relevant=podgroups.relevance(mode))
    whole, halves = played(history, rules), played(history, rules)
    whole.round()
    halves.cache.commit(halves.cache.prepare(halves.reports, halves.pods.values(), halves.cache.moment))
    for node in NODES:
        assert whole.cache.look_up(node) == halves.cache.look_up(node)
    assert whole.cache.desynced() == halves.cache.desynced()


@holds_for(histories(), st.sampled_from([ALL, NONE]), examples=100)
def test_a_round_that_can_read_no_report_refreshes_no_node(history: list[Event], mended: frozenset[Repair]) -> None:
    world = played(history, Rules(repairs=mended))
    before = world.cache.desynced(), [world.cache.look_up(node) for node in NODES]
    world.cache.resync({}, world.pods.values(), now=0.0)
    assert (world.cache.desynced(), [world.cache.look_up(node) for node in NODES]) == before


@holds_for(histories(), examples=100)
def test_a_report_that_speaks_of_other_pods_opens_no_node(history: list[Event]) -> None:
    world = played(history, Rules(follows_settings=False))
    closed = [node for node in NODES if not world.cache.look_up(node).fresh]
    others = [made.pod("unheard-of")]
    world.reports = {node: made.signed(report, others) for node, report in map(unsigned, world.reports.items())}
    assert world.round() == ()
    assert [node for node in NODES if not world.cache.look_up(node).fresh] == closed


def unsigned(of_node: tuple[str, NodeResourceTopology]) -> tuple[str, NodeResourceTopology]:
    return of_node[0], made.report(of_node[0])
