import pytest

from numalign.simulator.controllers.blindscheduler.asking import Asks
from numalign.simulator.trees import Tree


def container(cpu: str = "", **more: object) -> Tree:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}} if cpu else {}} | more


def pod(*containers: Tree, **spec: object) -> Tree:
    return {"spec": {"containers": list(containers)} | spec}


SIDECAR = container("1", restartPolicy="Always")
# Kube-scheduler spec 2.1.
REQUESTS = {
    "plain": (pod(container("1"), container("2")), 3000),
    "big init": (pod(container("1"), initContainers=[container("5")]), 5000),
    "sidecar, then init": (pod(container("2"), initContainers=[SIDECAR, container("5")]), 6000),
    "init, then sidecar": (pod(container("2"), initContainers=[container("5"), SIDECAR]), 5000),
    "overhead": (pod(container("1"), initContainers=[container("5")], overhead={"cpu": "250m"}), 5250),
    "pod level": (pod(container("1"), container("1"), resources={"requests": {"cpu": "4"}}), 4000),
    "rounded up": (pod(container("1u")), 1),
}


@pytest.mark.parametrize("tree, cpu", REQUESTS.values(), ids=REQUESTS)
def test_requests(tree: Tree, cpu: int) -> None:
    assert dict(Asks().of(tree).amounts)["cpu"] == cpu


def test_scoring_assumes_something_of_containers_that_ask_for_nothing() -> None:
    assert Asks().of(pod(container(), container("1"))).scored == (1100, 400 << 20)


def test_shortages_are_told_in_stock_order() -> None:
    requests = {"nvidia.com/gpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi", "cpu": "1", "ephemeral-storage": "1Gi"}
    names = [name for name, _ in Asks().of(pod({"name": "c", "resources": {"requests": requests}})).amounts]
    assert names == ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"]


def test_names_that_mean_nothing_are_left_out() -> None:
    assert Asks().of(pod({"name": "c", "resources": {"requests": {"bananas": "3"}}})).amounts == ()


def test_equal_pods_share_one() -> None:
    asks = Asks()
    assert asks.of(pod(container("1"))) is asks.of(pod(container("1")) | {"metadata": {"name": "other"}})
    assert asks.of(pod(container("1"))) is not asks.of(pod(container("1"), nodeSelector={"a": "b"}))


def test_host_ports_of_apps_and_sidecars() -> None:
    port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    spec = pod(container("1", **port), initContainers=[container("1", ports=[{"hostPort": 9}])])
    assert Asks().of(spec).ports == {("0.0.0.0", "TCP", 8080)}
