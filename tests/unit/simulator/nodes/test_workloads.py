import pytest

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.simulator.nodes import workloads
from numalign.simulator.nodes.workloads import ContainerBehaviour

SIDECAR = {"name": "side", "restartPolicy": "Always"}


def pod(**annotations: str) -> Pod:
    named = {f"numalign.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    spec = {"initContainers": [{"name": "init"}, SIDECAR], "containers": [{"name": "app"}]}
    return decode.decode(Pod, {"metadata": {"name": "web", "namespace": "ns", "annotations": named}, "spec": spec})


@pytest.mark.parametrize(
    "annotations, init, app",
    [
        pytest.param(
            {}, ContainerBehaviour(1.0), ContainerBehaviour(), id="nothing said: init for a second, apps until stopped"
        ),
        pytest.param({"run_seconds": "90"}, ContainerBehaviour(1.0), ContainerBehaviour(90.0), id="run for a time"),
        pytest.param(
            {"run_seconds": "0.5", "exit_code": "3"}, ContainerBehaviour(1.0), ContainerBehaviour(0.5, 3), id="and fail"
        ),
        pytest.param({"init_seconds": "20"}, ContainerBehaviour(20.0), ContainerBehaviour(), id="slow init"),
    ],
)
def test_annotations_say_what_containers_do(
    annotations: dict[str, str], init: ContainerBehaviour, app: ContainerBehaviour
) -> None:
    told = pod(**annotations)
    first, side, last = told.in_admission_order()
    assert [workloads.annotated(told, each, 0) for each in (first, side, last)] == [init, ContainerBehaviour(), app]


@pytest.mark.parametrize(
    "annotations",
    [
        {"run_seconds": "soon"},
        {"run_seconds": "-1"},
        {"run_seconds": "nan"},
        {"run_seconds": "inf"},
        {"exit_code": "256"},
        {"exit_code": "-1"},
        {"exit_code": "9" * 5000},
        {"exit_code": "٣"},
    ],
    ids=str,
)
def test_an_annotation_that_cannot_be_read_shows_in_the_container(annotations: dict[str, str]) -> None:
    told = pod(**annotations)
    run = workloads.annotated(told, told.spec.containers[0], 0)
    assert (run.seconds, run.exit_code) == (0.0, workloads.CANNOT_RUN)
    assert "Pod ns/web, metadata.annotations[numalign.io/" in run.message
