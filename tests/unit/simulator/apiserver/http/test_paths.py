"""Paths: resource, namespace, object and part; and what leads nowhere."""

import pytest

from numalign.simulator.apiserver.http import paths
from numalign.simulator.apiserver.http.paths import Located
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.registry import Registry
from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, NAMESPACES, NODES, PODS

FOUND = {
    "/api/v1/pods": Located(PODS),
    "/api/v1/namespaces/x/pods": Located(PODS, "x"),
    "/api/v1/namespaces/x/pods/y": Located(PODS, "x", "y"),
    "/api/v1/namespaces/x/pods/y/status": Located(PODS, "x", "y", "status"),
    "/api/v1/namespaces/x/bindings": Located(PODS, "x", "", "binding"),
    "/api/v1/nodes/n/": Located(NODES, "", "n"),
    "/api/v1/namespaces": Located(NAMESPACES),
    "/api/v1/namespaces/x": Located(NAMESPACES, "", "x"),
    "/api/v1/namespaces/x/status": Located(NAMESPACES, "", "x", "status"),
    "/api/v1/namespaces/x/finalize": Located(NAMESPACES, "", "x", "finalize"),
    "/apis/apps/v1/namespaces/x/deployments/d/scale": Located(DEPLOYMENTS, "x", "d", "scale"),
    "/api/v1/watch/pods": Located(PODS, follows=True),
    "/api/v1/watch/namespaces/x/pods/y": Located(PODS, "x", "y", follows=True),
}


@pytest.mark.parametrize("path, place", FOUND.items(), ids=FOUND)
def test_a_path_means_a_place(path: str, place: Located) -> None:
    assert paths.located(Registry(), path) == place


MISSING = (
    "/api/v1/foos",
    "/api/v1/pods/x",
    "/api/v1/namespaces/x/nodes",
    "/api/v1/namespaces/x/pods/y/status/more",
    "/apis/apps/v9/deployments",
)


@pytest.mark.parametrize("path", MISSING)
def test_within_a_group_what_is_not_there_is_not_found(path: str) -> None:
    with pytest.raises(StatusError) as caught:
        paths.located(Registry(), path)
    assert caught.value.code == 404


@pytest.mark.parametrize("path", ["/", "/foo", "/apis/none.example/v1/things", "/api", "/apis/apps/v1"])
def test_outside_of_all_groups_there_is_nothing(path: str) -> None:
    with pytest.raises(paths.NoSuchGroup):
        paths.located(Registry(), path)
