"""The verbs: what the server has is what comes back, and what it refuses is raised."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodSpec
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.resources import NODES, PODS, DeleteOptions, Preconditions
from tests.unit.kube.clocks import HandClock, run
from tests.unit.kube.stub import Stub, access, once, serving
from tests.unit.kube.stubhttp import Reply, status
from tests.unit.kube.watching import pod

WEB = PODS.at("web", "default")


def with_client(check: Callable[[Stub, Client], Coroutine[Any, Any, Any]], **how: Any) -> Any:
    async def ready() -> Any:
        stub = Stub(**how)
        stub.put("pods", pod("web"))
        async with serving(stub), Client(access(stub), clock=HandClock()) as client:
            return await check(stub, client)

    return run(ready())


def test_an_object_is_read_into_its_struct() -> None:
    async def check(stub: Stub, client: Client) -> Pod:
        return await client.get(WEB)

    found = with_client(check)
    assert isinstance(found, Pod)
    assert found.metadata.full_name == "default/web"


def test_what_is_not_there_is_named() -> None:
    async def check(stub: Stub, client: Client) -> None:
        await client.get(PODS.at("gone", "default"))

    with pytest.raises(errors.NotFound, match='get Pod default/gone: 404 NotFound: pods "gone" not found'):
        with_client(check)


def test_an_answer_that_is_no_such_object_is_named() -> None:
    async def check(stub: Stub, client: Client) -> None:
        await client.get(WEB)

    with pytest.raises(BadObject, match=r"Pod default/web, spec: expected an object"):
        with_client(check, faults=once(Reply(200, pod("web") | {"spec": 7})))


def test_everything_is_listed_page_by_page() -> None:
    async def check(stub: Stub, client: Client) -> tuple[list[int], int]:
        for number in range(6):
            stub.put("pods", pod(f"p{number}"))
        sizes = [len(page.items) async for page in client.pages(PODS.everywhere(), limit=3)]
        return sizes, len(await client.every(PODS.everywhere()))

    assert with_client(check) == ([3, 3, 1], 7)


def test_a_hostile_object_in_a_list_stands_in_its_place() -> None:
    async def check(stub: Stub, client: Client) -> list[bool]:
        stub.put("pods", pod("bad") | {"spec": 7})
        return [isinstance(item, Unreadable) for item in await client.every(PODS.everywhere())]

    assert with_client(check) == [True, False]


def test_an_object_is_created_once() -> None:
    async def check(stub: Stub, client: Client) -> Pod:
        new = Pod(ObjectMeta(name="new", namespace="default"), PodSpec(scheduler_name="numalign"))
        created = await client.create(PODS.within("default"), new)
        with pytest.raises(errors.Conflict, match="409 AlreadyExists"):
            await client.create(PODS.within("default"), new)
        return created

    created = with_client(check)
    assert created.metadata.resource_version
    assert created.spec.scheduler_name == "numalign"


def test_an_update_of_an_old_version_is_refused() -> None:
    async def check(stub: Stub, client: Client) -> None:
        old = stub.objects["pods"]["default", "web"]
        await client.update(WEB, old | {"spec": {"nodeName": "n1"}})
        await client.update(WEB, old)

    with pytest.raises(errors.Conflict, match="update Pod default/web: 409 Conflict: the object has been modified"):
        with_client(check)


def test_a_patch_of_the_status_goes_to_the_status() -> None:
    async def check(stub: Stub, client: Client) -> tuple[str, str]:
        patched = await client.patch(WEB.sub("status"), "merge", {"status": {"phase": "Running"}})
        return patched.status.phase, stub.asked[-1].path

    assert with_client(check) == ("Running", "/api/v1/namespaces/default/pods/web/status")


def test_apply_names_its_field_manager() -> None:
    async def check(stub: Stub, client: Client) -> dict[str, str]:
        await client.apply(WEB, {"spec": {"nodeName": "n1"}}, manager="numalign")
        return stub.asked[-1].query

    assert with_client(check) == {"fieldManager": "numalign"}


def test_a_deletion_may_mean_exactly_one_object() -> None:
    async def check(stub: Stub, client: Client) -> tuple[Any, int]:
        await client.delete(WEB, DeleteOptions(0, preconditions=Preconditions(uid="u")))
        return stub.asked[-1].document, len(stub.objects["pods"])

    assert with_client(check) == ({"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}}, 0)


def test_scale_is_read_and_written() -> None:
    async def check(stub: Stub, client: Client) -> tuple[int, int]:
        stub.put("pods", pod("web") | {"spec": {"replicas": 2}})
        before = await client.scale_of(WEB)
        after = await client.scale(WEB, 5)
        return before.spec.replicas, after.spec.replicas

    assert with_client(check) == (2, 5)


def test_a_refusal_has_the_causes() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.nodeName", "message": "bad"}]

    async def check(stub: Stub, client: Client) -> None:
        await client.create(NODES.everywhere(), {"metadata": {"name": "n1"}})

    with pytest.raises(errors.Invalid) as raised:
        with_client(check, faults=once(status(422, "Invalid", "no", causes=causes)))
    assert raised.value.status.details.causes[0].field == "spec.nodeName"
