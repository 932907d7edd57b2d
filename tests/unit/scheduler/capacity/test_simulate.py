"""Questions about whole nodes promise nothing: equal questions get equal answers, and no node changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numalign.api.decode import decode
from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.scheduler import main
from numalign.scheduler.capacity import templates
from numalign.scheduler.capacity.simulate import Simulation
from numalign.scheduler.extender.protocol import ExtenderArgs
from tests import placing
from tests.placing import Placing
from tests.unit.placement.test_engine import node, pod, report
from tests.unit.scheduler.capacity.test_service import cluster


def simulation(known: Placing) -> Simulation:
    return Simulation(known.cluster, {known.profile.name: known.profile}, main.defaults())


def whole(name: str, cpus: int = 16, **more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(encode(node(name, cpus=cpus)))
    plain["metadata"] |= more
    return plain


def question(*nodes: dict[str, Any], cpu: int = 6) -> ExtenderArgs:
    asked = {"Pod": msgspec.json.decode(encode(pod("p", cpu=cpu))), "Nodes": {"items": list(nodes)}}
    return decode.decode(ExtenderArgs, asked)


def test_nodes_of_the_cluster_are_judged_as_they_are_and_stay_so() -> None:
    known = cluster(a=8, b=4)
    before, asked = placing.views(known.engine), question(whole("a"), whole("b"))
    answers = [simulation(known).filter(asked) for _ in range(3)]
    assert answers[0] == answers[2]
    assert answers[0].nodes is not None
    assert [each["metadata"]["name"] for each in answers[0].nodes.items] == ["a"]
    assert "needs 6 CPUs in one NUMA zone" in answers[0].failed_and_unresolvable_nodes["b"]
    assert placing.views(known.engine) == before


def test_new_nodes_are_judged_by_the_report_in_their_annotations() -> None:
    written = encode(normalise.encode(report("t", cpus=(4, 12)))).decode()
    template = whole("new", annotations={templates.TOPOLOGY: written})
    answers = simulation(cluster(a=8)).filter(question(template, cpu=12))
    assert not answers.failed_and_unresolvable_nodes
    assert simulation(cluster(a=8)).filter(question(template, cpu=13)).failed_and_unresolvable_nodes


def test_new_nodes_are_judged_by_their_machine_and_kubelet() -> None:
    kubelet = '{"topologyManagerPolicy": "single-numa-node", "cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}'
    template = whole("new", cpus=31, annotations={templates.MACHINE: "2x16", templates.KUBELET: kubelet})
    found = {cpu: simulation(cluster(a=8)).filter(question(template, cpu=cpu)) for cpu in (16, 17)}
    assert not found[16].failed_and_unresolvable_nodes
    assert set(found[17].failed_and_unresolvable_nodes) == {"new"}


def test_new_nodes_of_which_nothing_is_known_pass_by_their_totals() -> None:
    answers = simulation(cluster(a=8)).filter(question(whole("small", cpus=4), whole("large", cpus=64), cpu=32))
    assert set(answers.failed_and_unresolvable_nodes) == {"small"}


def test_scores_are_those_of_the_zones() -> None:
    found = simulation(cluster(a=8, b=4)).prioritize(question(whole("a"), whole("b"), cpu=4))
    assert {each.host for each in found} == {"a", "b"}
    assert all(0 <= each.score <= 10 for each in found)


@pytest.mark.parametrize(
    "annotations, why",
    [
        ({templates.TOPOLOGY: "{"}, "NodeResourceTopology"),
        ({templates.MACHINE: "unheard-of"}, "known are"),
        ({templates.MACHINE: "2x16", templates.KUBELET: "[]"}, "is not a JSON object"),
    ],
)
def test_annotations_that_make_no_sense_are_the_reason_of_their_node_alone(
    annotations: dict[str, str], why: str
) -> None:
    odd, plain = whole("odd", annotations=annotations), whole("plain", cpus=8)
    found = simulation(cluster(a=8)).filter(question(odd, plain, cpu=4))
    assert set(found.failed_and_unresolvable_nodes) == {"odd"}
    assert why in found.failed_and_unresolvable_nodes["odd"]
    assert found.nodes is not None
    assert [each["metadata"]["name"] for each in found.nodes.items] == ["plain"]


@pytest.mark.parametrize(
    "odd", [{}, {"metadata": {}}, {"metadata": {"name": 7}}, {"metadata": {"name": "x"}, "status": 7}]
)
def test_a_node_that_cannot_be_read_is_no_reason_to_say_nothing_about_the_others(odd: dict[str, Any]) -> None:
    found = simulation(cluster(a=8)).filter(question(odd, whole("a"), cpu=4))
    assert found.nodes is not None
    assert [each["metadata"]["name"] for each in found.nodes.items] == ["a"]
    assert len(found.failed_and_unresolvable_nodes) == 1


def test_names_are_no_question_for_a_simulation() -> None:
    asked = decode.decode(ExtenderArgs, {"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["a"]})
    with pytest.raises(BadObject, match="whole Node objects"):
        simulation(cluster(a=8)).filter(asked)
