"""The report has the model's decisions, in numbers of one unit per resource."""

from numalign.api.decode import cpuset
from numalign.cli.display import values
from numalign.kubelet import admission
from numalign.kubelet.topologymanager import mask as masks
from tests.unit.cli.small import STATIC_CPUS, STATIC_MEMORY, admitted, guaranteed, kubelet, pod

GPU = "nvidia.com/gpu"
PINNING = kubelet("2x16", "single-numa-node", **STATIC_CPUS, **STATIC_MEMORY)


def resource(answer: values.AdmitReport, name: str) -> values.Resource:
    return next(each for each in answer.resources if each.name == name)


def test_placements_are_those_of_the_model() -> None:
    wanted = pod("p", guaranteed(4, "2Gi"), guaranteed(3))
    _, outcome = admission.admit(PINNING, PINNING.initial(), wanted)
    containers = admitted(PINNING, wanted).pods[0].containers
    assert [each.cpus for each in containers] == [cpuset.text(each.cpus or 0) for each in outcome.placement.values()]
    for reported, placed in zip(containers, outcome.placement.values(), strict=True):
        assert reported.affinity.zones == masks.members(placed.affinity.mask or 0)
        assert [block.bytes for block in reported.memory] == [block.size for block in placed.memory]


def test_a_container_sits_where_its_things_are() -> None:
    (container,) = admitted(PINNING, pod("p", guaranteed(4))).pods[0].containers
    assert container.zones == (0,)
    assert container.affinity == values.Affinity(zones=(0,), preferred=True)


def test_shared_cpus_are_null() -> None:
    (container,) = admitted(kubelet(), pod("p", guaranteed(4))).pods[0].containers
    assert (container.cpus, container.zones, container.affinity.zones) == (None, (), None)


def test_devices_are_listed_by_id() -> None:
    answer = admitted(kubelet("gpu-8", "single-numa-node"), pod("p", {GPU: 2}))
    assert answer.pods[0].containers[0].devices == {GPU: ("gpu-0", "gpu-1")}


def test_each_pod_meets_what_those_before_it_were_given() -> None:
    answer = admitted(PINNING, *(pod(f"p{n}", guaranteed(10)) for n in range(3)))
    assert [each.verdict for each in answer.pods] == ["admitted", "admitted", "rejected"]


def test_a_refused_pod_leaves_nothing_behind() -> None:
    refused = admitted(PINNING, pod("p", guaranteed(10), guaranteed(20)))
    assert refused.resources == admitted(PINNING, pod("p", guaranteed(99))).resources
    assert all(zone.free == zone.allocatable for zone in resource(refused, "cpu").zones)


def test_the_node_is_counted_as_a_scheduler_counts_it() -> None:
    answer = admitted(kubelet(), pod("p", {"cpu": "1500m", "memory": "1Gi"}))
    cpu = resource(answer, "cpu")
    assert (cpu.allocatable, cpu.free, cpu.zones) == (32, 30.5, ())


def test_zones_know_their_pods() -> None:
    answer = admitted(PINNING, pod("a", guaranteed(10)), pod("b", guaranteed(10)))
    assert [zone.pods for zone in resource(answer, "cpu").zones] == [{"default/a": 10}, {"default/b": 10}]


def test_a_pod_is_reported_with_its_request_class_and_source() -> None:
    (reported,) = admitted(PINNING, pod("p", guaranteed(4, "2Gi"))).pods
    assert reported.requests == {"cpu": 4, "memory": 2 << 30}
    assert (reported.qos_class, reported.source, reported.full_name) == ("Guaranteed", "test", "default/p")


def test_a_device_that_the_machine_does_not_have_gets_a_note() -> None:
    (note,) = admitted(kubelet(), pod("p", {"a.com/x": 1})).pods[0].notes
    assert note == "the machine has no a.com/x, which a kubelet ignores; a scheduler would not send the pod here"


def test_an_answer_that_takes_the_kubelet_minutes_gets_a_note() -> None:
    memory = {**STATIC_MEMORY, "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}]}
    options = {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "64"}}
    on = kubelet("superchip-34", "best-effort", **STATIC_CPUS, **memory, **options)
    (reported,) = admitted(on, pod("p", guaranteed(4))).pods
    assert reported.verdict == "admitted"
    assert reported.steps >= admission.SLOW
    assert "needs about 6.9e+10 steps for this pod" in reported.notes[0]


def test_an_undecided_pod_has_the_reason() -> None:
    pages = {"extends": "2x16", "zones": [{"id": 0, "hugepages": {"2Mi": 4}}, {"id": 1, "hugepages": {}}]}
    on = kubelet(pages, "restricted", **STATIC_MEMORY)
    (reported,) = admitted(on, pod("p", {**guaranteed(2), "hugepages-2Mi": "2Mi"})).pods
    assert (reported.verdict, reported.reason, reported.explanation) == ("undecided", "", None)
    assert reported.message == "the kubelet crashes on a request for hugepages-2Mi, which some zone does not report"


def test_the_kubelet_is_reported_as_configured() -> None:
    assert admitted(PINNING, pod("p", guaranteed(1))).kubelet == values.KubeletSettings(
        version="1.38",
        topology_manager_policy="single-numa-node",
        topology_manager_scope="container",
        cpu_manager_policy="static",
        memory_manager_policy="Static",
    )
