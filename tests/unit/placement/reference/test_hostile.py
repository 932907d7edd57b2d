"""Whatever a report holds, a pod gets a verdict and a score: nothing is raised, nothing leaves its range."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.api.nrt.wire import Attribute, Cost, NodeResourceTopology, PublishedZone, Resource
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.placement.reference import classes, demand, eviction, filter, numanodes, scoring
from numalign.placement.reference.filter import Seen
from numalign.placement.reference.scoring import ReferenceScoring
from numalign.placement.referenceargs import Strategy
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod

names = st.sampled_from(["cpu", "memory", "example.com/nic", "hugepages-2Mi", ""]) | st.text(max_size=5)
written = (
    st.none()
    | st.integers()
    | st.floats()
    | st.sampled_from(["0", "1", "-1", "1e300", "4Gi", "x"])
    | st.text(max_size=4)
)
zone_names = st.integers(-1, 66).map("node-{}".format) | st.text(max_size=6)
zones = st.builds(
    PublishedZone,
    name=zone_names,
    type=st.sampled_from(["Node", "Node", "Node", "Socket", ""]),
    costs=st.lists(st.builds(Cost, name=zone_names, value=st.none() | st.integers()), max_size=3).map(tuple),
    resources=st.lists(
        st.builds(Resource, name=names, capacity=written, allocatable=written, available=written), max_size=4
    ).map(tuple),
)
settings = st.fixed_dictionaries(
    {
        "topologyManagerPolicy": st.sampled_from(["single-numa-node", "restricted", ""]),
        "topologyManagerScope": st.sampled_from(["pod", "container", ""]),
        "topologyManagerMaxNUMANodes": st.sampled_from(["2", "1024", "-9", "many"]),
    }
).map(lambda chosen: tuple(Attribute(name=name, value=value) for name, value in chosen.items()))
reports = st.builds(
    NodeResourceTopology, zones=st.none() | st.lists(zones, max_size=24).map(tuple), attributes=settings
)
containers = st.builds(
    container,
    sidecar=st.booleans(),
    cpu=st.sampled_from(["0", "1", "1500m", "9000"]),
    memory=st.sampled_from(["0", "1Gi"]),
    nic=st.integers(0, 3),
)
pods = st.builds(
    lambda apps, init, qos: pod(*apps, init=init, qos=qos),
    *[st.lists(containers, max_size=3)] * 2,
    st.sampled_from([*QoS, ""]),
)

PRESENT = classes.present_on(made.node())


@given(reports, pods)
def test_every_pod_gets_a_verdict(report: NodeResourceTopology, wanted: Pod) -> None:
    verdict = filter.decide(demand.of(wanted), PRESENT, Seen(reading=numanodes.read(report)))
    assert verdict.rejects_node is not verdict.status.is_success


@given(reports, pods, st.sampled_from(Strategy), st.dictionaries(names, st.integers(1, 9), max_size=2))
def test_every_score_is_in_range(
    report: NodeResourceTopology, wanted: Pod, strategy: Strategy, weights: dict[str, int]
) -> None:
    seen = Seen(reading=numanodes.read(report))
    assert 0 <= scoring.score(demand.of(wanted), seen, ReferenceScoring(strategy, weights)) <= 100


@given(reports, pods)
def test_every_eviction_has_a_report_or_a_cause(report: NodeResourceTopology, wanted: Pod) -> None:
    placed = {made.ref("p", each.name): 0 for each in wanted.spec.containers}
    after = eviction.simulate(report, [wanted], placed)
    assert isinstance(after, eviction.Impossible) or len(after.zones or ()) == len(report.zones or ())
