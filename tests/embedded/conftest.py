"""What tests of whole servers share: the real one and an embedded cluster, each started once, and kubectl for it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests import conftest
from tests.embedded import clusters, definitions, kubectl, realserver
from tests.embedded.clusters import Up
from tests.embedded.kubectl import Kubectl
from tests.embedded.realserver import RealServer

BUILT = {"real_server", "anywhere"}
"""Fixtures that run a program that Go builds."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """A kube-apiserver that serves the definitions of the tests."""
    found = realserver.programs()
    conftest.require(found, "Go, to build etcd and kube-apiserver")
    assert found is not None
    with realserver.running(tmp_path_factory.mktemp("real"), *found) as server:
        define(server)
        yield server


def define(server: RealServer) -> None:
    """A definition that is accepted is served a moment later, so the answers are awaited."""
    for crd in (definitions.REPORTS, definitions.THINGS, definitions.SAMPLES):
        assert server.call("POST", DEFINITIONS, crd)[0] in (201, 409)
        spec = crd["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][-1]['name']}/{spec['names']['plural']}"
        while server.call("GET", path)[0] != 200:
            pass


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An embedded cluster of four nodes, over HTTP."""
    with clusters.up(tmp_path_factory.mktemp("embedded"), "--nodes 4") as found:
        yield found


@pytest.fixture(scope="session")
def anywhere(embedded: Up, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl in the default namespace of the embedded cluster."""
    program = kubectl.program()
    conftest.require(program, "Go, to build kubectl")
    assert program is not None
    return Kubectl(program, embedded.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def here(anywhere: Kubectl, embedded: Up, request: pytest.FixtureRequest) -> Kubectl:
    """kubectl in a namespace of the test's own."""
    number = f"{zlib.crc32(request.node.nodeid.encode()):x}"
    return anywhere._replace(namespace=embedded.namespace(f"test-{number}"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and BUILT.intersection(item.fixturenames):
            item.add_marker(pytest.mark.built)
