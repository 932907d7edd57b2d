"""What the dashboard says of waiting pods is what `numalign explain` says, and changes are asked of the engine."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod, SchedulingGate
from numalign.cli.results.moments import waiting
from numalign.cli.results.moments.fleet import FleetTable
from numalign.cli.results.moments.scene import Scene
from numalign.cli.results.moments.waiting import Asked
from numalign.dashboard.details import Answer, Ask, Change, PodAnswer
from numalign.scheduler import profiles
from tests import machinescenes
from tests.unit.placement.direct import clusters as direct
from tests.unit.placement.direct import machines

GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def scene() -> Scene:
    return machinescenes.busy()


def ask(scene: Scene, pod: str, change: Change | None = None) -> PodAnswer:
    found = waiting.asked(Asked(scene), pod, change or Change())
    assert found is not None
    return found


def test_pods_of_one_owner_are_one_row_and_every_cell_is_a_nodes_answer(scene: Scene) -> None:
    matrix = waiting.matrix(Asked(scene))
    assert sorted(shape.pods for shape in matrix.shapes) == [
        ("default/huge",),
        ("default/late-0", "default/late-1", "default/late-2"),
    ]
    assert matrix.unserved == ("default/other",)
    assert sorted(node for group in matrix.groups for node in group.nodes) == ["gpu-a", "gpu-b", "plain"]
    for shape, answers in zip(matrix.shapes, matrix.answers, strict=True):
        closest = ask(scene, shape.pods[0]).closest
        alone = {node: each for each in closest for node in (each.node, *each.like)}
        for group, answer in zip(matrix.groups, answers, strict=True):
            expected = alone.get(group.nodes[0])
            assert answer.answer is (expected.answer if expected is not None else Answer.FITS)


def test_nodes_that_answer_the_same_are_one_answer(scene: Scene) -> None:
    answers = ask(scene, "default/huge").closest
    named = [node for each in answers for node in (each.node, *each.like)]
    assert sorted(named) == ["gpu-a", "gpu-b", "plain"]
    assert len(answers) < len(named)


def test_pods_that_are_gated_are_listed_and_not_asked_about() -> None:
    found = machinescenes.busy()
    pod = found.waiting["default/late-0"]
    gated = structs.replace(
        pod, spec=structs.replace(pod.spec, scheduling_gates=(SchedulingGate(name="example.com/wait"),))
    )
    matrix = waiting.matrix(Asked(structs.replace(found, waiting={"default/late-0": gated})))
    assert (matrix.shapes, matrix.gated) == ((), ("default/late-0",))


def test_an_answer_says_what_is_short_in_which_zone(scene: Scene) -> None:
    closest = {each.node: each for each in ask(scene, "default/late-0").closest}["gpu-a"]
    assert closest.answer is Answer.SHORT
    lack = next(each for each in closest.lacks if each.resource == GPU)
    assert [(zone.zone, zone.free, zone.short) for zone in lack.zones] == [(0, 1, 2), (1, 2, 1)]
    assert (lack.in_zones, lack.closest) == (1, lack.zones[1])


def test_a_pod_that_no_node_can_hold_never_fits(scene: Scene) -> None:
    found = ask(scene, "default/huge")
    assert found.never
    assert {each.answer for each in found.closest} <= {Answer.NEVER, Answer.MAYBE}


def test_each_suggestion_that_can_be_tried_makes_the_pod_fit(scene: Scene) -> None:
    found = ask(scene, "default/late-0")
    tried = [each.change for each in found.suggestions if each.change is not None]
    assert tried
    for change in tried:
        assert ask(scene, "default/late-0", change).fitting


def test_a_change_leaves_no_trace(scene: Scene) -> None:
    before = ask(scene, "default/late-0")
    changed = ask(scene, "default/late-0", Change(gone=("default/train-1",), node="gpu-b", policy="none"))
    assert changed.fitting == ("gpu-a", "gpu-b")
    assert {each.node for each in changed.changed} == {"gpu-a", "gpu-b"}
    assert ask(scene, "default/late-0") == before


def test_less_is_asked_of_all_nodes(scene: Scene) -> None:
    assert "gpu-a" in ask(scene, "default/late-0", Change(asks=(Ask("main", GPU, 2),))).fitting


@pytest.mark.parametrize(
    "change",
    [Change(gone=("default/nobody",)), Change(node="gpu-z", policy="none"), Change(asks=(Ask("side", "cpu", 1),))],
)
def test_a_change_of_what_is_not_there_is_a_problem_that_is_named(scene: Scene, change: Change) -> None:
    assert ask(scene, "default/late-0", change).problem


def test_a_pod_that_has_a_node_is_not_asked_about(scene: Scene) -> None:
    found = ask(scene, "default/train-0")
    assert (found.node, found.headline) == ("gpu-a", "")


def test_pods_of_others_and_pods_that_are_not_there(scene: Scene) -> None:
    assert "no scheduler somebody-else is known here" in ask(scene, "default/other").unattended
    assert waiting.asked(Asked(scene), "default/nobody", Change()) is None


SINGLE = '{"policy": "SingleNUMANode", "scope": "Container"}'


def pod(name: str, *cpus: int | str, spec: str = SINGLE) -> Pod:
    made = direct.named(machines.pod(*cpus, spec=spec), name)
    return structs.replace(made, spec=structs.replace(made.spec, scheduler_name=profiles.NAME))


def test_a_pod_on_a_node_in_direct_mode_shows_what_was_decided_for_each_container() -> None:
    found = ask(machinescenes.read(*machinescenes.direct("n", pod("two", 6, "500m"))), "default/two")
    decided = {each.name: (each.zones, each.decided.cpus) for each in found.containers if each.decided is not None}
    assert (found.node, decided) == ("n", {"c0": (((0,),), "0-5"), "c1": (((0,),), "")})


def test_a_waiting_pod_whose_annotations_make_no_sense_says_so_and_hides_no_other() -> None:
    pods = pod("wrong", 6, spec='{"polcy": "None"}'), pod("other", 20)
    items = [machinescenes.item("Pod", "v1", each) for each in pods]
    scene = machinescenes.read(*machinescenes.direct("n"), *items)
    matrix = waiting.matrix(Asked(scene))
    said = {shape.pods[0]: shape.headline for shape in matrix.shapes}
    assert "polcy: no field of this name" in said["default/wrong"]
    assert "default/other" in said
    assert [each.name for each in FleetTable().nodes(scene)] == ["n"]


def test_a_pod_that_fits_with_zones_by_container_is_advised_to_ask_for_them() -> None:
    wide = pod("wide", 6, 6, spec=SINGLE.replace("Container", "Pod"))
    found = ask(machinescenes.read(*machinescenes.direct("n"), machinescenes.item("Pod", "v1", wide)), "default/wide")
    wanted = 'would fit on n with "scope": "Container" in its annotation numalign.io/numa-topology-spec'
    assert found.suggestions[0].text == wanted
