"""The API server over real sockets: random histories, and our own client and informer against it."""

import asyncio
import http.client
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kube import binding, errors
from numalign.kube.client import Client
from numalign.kube.request import Selection
from numalign.kube.resources import NODES, PODS
from numalign.kube.watch.informer import Informer, Options
from numalign.simulator.apiserver.http.server import Address
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.verbs.api import Api
from tests.conftest import require
from tests.embedded import realserver
from tests.unit.simulator.apiserver import definitions, doors, ours
from tests.unit.simulator.apiserver.http.test_routes_errors import REFUSALS
from tests.unit.simulator.apiserver.machine import Histories, Target
from tests.unit.simulator.apiserver.overhttp import OverHttp, connected

NUMBERS = itertools.count()
WEB = PODS.at("web", "default")


def play(url: str, token: str, examples: int) -> None:
    """So many random histories on the server, each in a namespace of its own."""

    class OnServer(Histories):
        def target(self) -> Target:
            return OverHttp(url, f"history-{next(NUMBERS)}", token)

    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    how = settings(max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(OnServer, settings=how)


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with ours.threaded() as found:
        yield found


def test_random_histories_over_http_agree_with_the_model(address: Address) -> None:
    play(address.url, "", examples=10)


@pytest.mark.built
@pytest.mark.slow
def test_random_histories_on_the_real_server_agree_with_the_same_model(tmp_path: Path) -> None:
    programs = realserver.programs()
    require(programs, "Go, to build etcd and kube-apiserver")
    assert programs is not None
    with realserver.running(tmp_path, *programs) as real:
        port = real.connection.port
        play(f"https://127.0.0.1:{port}", real.token, examples=15)


FURNITURE = (
    ("/api/v1/namespaces/default/pods", doors.pod("a")),
    ("/api/v1/namespaces/default/configmaps", doors.named("c")),
    ("/apis/apps/v1/namespaces/default/deployments", doors.workload("d")),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definitions.widgets()),
)
# A real server has a kubelet to ask, and takes a moment to serve what was just defined.
OURS_ALONE = {"a log", "a custom object that is not there"}


@pytest.mark.built
@pytest.mark.slow
def test_the_real_server_refuses_in_the_same_words(tmp_path: Path) -> None:
    programs = realserver.programs()
    require(programs, "Go, to build etcd and kube-apiserver")
    assert programs is not None
    with realserver.running(tmp_path, *programs) as real:
        for path, tree in FURNITURE:
            assert real.call("POST", path, tree)[0] == 201
        connection = connected(f"https://127.0.0.1:{real.connection.port}")
        said = {
            name: refusal(connection, *case[:3], token=real.token)
            for name, case in REFUSALS.items()
            if name not in OURS_ALONE
        }
        connection.close()
    assert said == {name: REFUSALS[name][3:] for name in said}


def refusal(connection: http.client.HTTPConnection, method: str, path: str, body: Any, token: str) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())["message"]


def test_our_client_creates_reads_changes_and_deletes() -> None:
    async def check(api: Api, address: Address, client: Client) -> list[str]:
        made = await client.create(PODS.within("default"), doors.pod("web"))
        changed = await client.patch(WEB, "merge", {"metadata": {"labels": {"app": "web"}}})
        found = await client.get(WEB)
        await client.delete(WEB)
        assert (found.metadata.uid, found.metadata.labels) == (made.metadata.uid, {"app": "web"})
        assert changed.metadata.resource_version == found.metadata.resource_version
        return [item.metadata.name for item in await client.every(PODS.everywhere()) if isinstance(item, Pod)]

    assert ours.run(check) == []


def test_our_client_binds_once_and_is_told_when_it_is_too_late() -> None:
    async def check(api: Api, address: Address, client: Client) -> tuple[str, bool, bool]:
        made = await client.create(PODS.within("default"), doors.pod("web"))
        first = await binding.bind(client, made.metadata, "node-1")
        second = await binding.bind(client, made.metadata, "node-2")
        return (await client.get(WEB)).spec.node_name, first == binding.DONE, second == binding.DONE

    assert ours.run(check) == ("node-1", True, False)


def test_a_gone_pod_cannot_be_bound() -> None:
    async def check(api: Api, address: Address, client: Client) -> bool:
        return (await binding.bind(client, ObjectMeta(name="nobody", namespace="default"), "node-1")) == binding.DONE

    assert ours.run(check) is False


def test_pages_of_our_client_add_up() -> None:
    async def check(api: Api, address: Address, client: Client) -> list[int]:
        for number in range(25):
            api.create(resources.NODES, doors.named(f"node-{number:02}", ""))
        return [len(page.items) async for page in client.pages(NODES.everywhere(), limit=10)]

    assert ours.run(check) == [10, 10, 5]


@pytest.mark.parametrize("initial", [True, False], ids=["watch list", "list and watch"])
def test_an_informers_store_follows_the_server(initial: bool) -> None:
    async def check(api: Api, address: Address, client: Client) -> dict[str, str]:
        api.create(resources.PODS, doors.pod("before"))
        informer = Informer(client, PODS.everywhere(), lambda change: None, Options(initial_events=initial))
        running = asyncio.create_task(informer.run())
        await informer.synced()
        api.create(resources.PODS, doors.pod("web"))
        api.bind("web", "default", "node-1")
        api.delete(resources.PODS, "before", "default")
        while not is_settled(informer):
            await asyncio.sleep(0)
        running.cancel()
        return {pod.metadata.name: pod.spec.node_name for pod in informer.store}

    assert ours.run(check) == {"web": "node-1"}


def is_settled(informer: Informer[Pod]) -> bool:
    return [pod.spec.node_name for pod in informer.store] == ["node-1"]


def test_an_informer_that_comes_too_late_looks_at_everything_again() -> None:
    async def check(api: Api, address: Address, client: Client) -> int:
        informer = Informer(client, PODS.everywhere(), lambda change: None, Options(initial_events=False))
        for number in range(50):
            api.create(resources.PODS, doors.pod(f"pod-{number}"))
        running = asyncio.create_task(informer.run())
        await informer.synced()
        running.cancel()
        return len(informer.store)

    assert ours.run(check, watch_cache_size=5) == 50


def test_a_bad_selector_is_our_clients_bad_request() -> None:
    async def check(api: Api, address: Address, client: Client) -> str:
        with pytest.raises(errors.BadRequest) as caught:
            await client.every(PODS.everywhere(), Selection(labels="a b"))
        return str(caught.value)

    assert "expected: in, notin, =, ==, !=, gt, lt" in ours.run(check)
