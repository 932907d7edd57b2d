"""Paths: resource, namespace, object and part; and what leads nowhere."""

import pytest

from numalign.simulator.apiserver.http import requests
from numalign.simulator.apiserver.http.requests import RequestInfo
from numalign.simulator.apiserver.schemas.registry import Registry
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, NAMESPACES, NODES, PODS

FOUND = {
    "/api/v1/pods": RequestInfo(PODS),
    "/api/v1/namespaces/x/pods": RequestInfo(PODS, "x"),
    "/api/v1/namespaces/x/pods/y": RequestInfo(PODS, "x", "y"),
    "/api/v1/namespaces/x/pods/y/status": RequestInfo(PODS, "x", "y", "status"),
    "/api/v1/namespaces/x/bindings": RequestInfo(PODS, "x", "", "binding"),
    "/api/v1/nodes/n/": RequestInfo(NODES, "", "n"),
    "/api/v1/namespaces": RequestInfo(NAMESPACES),
    "/api/v1/namespaces/x": RequestInfo(NAMESPACES, "", "x"),
    "/api/v1/namespaces/x/status": RequestInfo(NAMESPACES, "", "x", "status"),
    "/api/v1/namespaces/x/finalize": RequestInfo(NAMESPACES, "", "x", "finalize"),
    "/apis/apps/v1/namespaces/x/deployments/d/scale": RequestInfo(DEPLOYMENTS, "x", "d", "scale"),
    "/api/v1/watch/pods": RequestInfo(PODS, is_watch=True),
    "/api/v1/watch/namespaces/x/pods/y": RequestInfo(PODS, "x", "y", is_watch=True),
}


@pytest.mark.parametrize("path, place", FOUND.items(), ids=FOUND)
def test_a_path_means_a_place(path: str, place: RequestInfo) -> None:
    assert requests.request_info(Registry(), path) == place


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
        requests.request_info(Registry(), path)
    assert caught.value.code == 404


@pytest.mark.parametrize("path", ["/", "/foo", "/apis/none.example/v1/things", "/api", "/apis/apps/v1"])
def test_outside_of_all_groups_there_is_nothing(path: str) -> None:
    with pytest.raises(requests.NoSuchGroup):
        requests.request_info(Registry(), path)
