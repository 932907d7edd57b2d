"""HTTP itself: requests in any pieces, answers in order, watches as chunks, and who is let in."""

import asyncio
import gzip
import json
import ssl
from pathlib import Path

import pytest
from msgspec import structs

from numalign.process.http.messages import Request
from numalign.simulator.apiserver.http import application, server
from numalign.simulator.apiserver.http.nonresource import NonResourcePaths
from numalign.simulator.apiserver.http.server import Address, ListenOptions
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS
from numalign.simulator.apiserver.verbs.api import Api
from tests.unit.simulator.apiserver import doors, wires

MAPS = "/api/v1/namespaces/default/configmaps"
MADE = b'{"metadata":{"name":"c"}}'


@pytest.mark.parametrize("pieces", [1, 2, 7, 50])
def test_requests_may_come_in_any_pieces(pieces: int) -> None:
    said = wires.post(MAPS, MADE) + wires.get(f"{MAPS}/c")
    assert [code for code, _ in wires.talk(said, answers=2, pieces=pieces)] == [201, 200]


def test_pipelined_requests_are_answered_in_order() -> None:
    said = wires.get("/healthz") + wires.get("/nowhere") + wires.post(MAPS, MADE) + wires.get("/healthz")
    assert [code for code, _ in wires.talk(said, answers=4)] == [200, 404, 201, 200]


def test_a_body_in_chunks_is_read() -> None:
    head = f"POST {MAPS} HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (MADE[:9], MADE[9:])) + b"0\r\n\r\n"
    assert wires.talk(head.encode() + body)[0][0] == 201


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    assert wires.talk(wires.post(MAPS, MADE, "Expect: 100-continue"))[0][0] == 201


def test_a_body_that_is_too_large_is_refused() -> None:
    ((code, body),) = wires.talk(wires.post(MAPS, b" " * (3 * 1024 * 1024 + 1)))
    assert (code, json.loads(body)["message"]) == (413, "Request entity too large: limit is 3145728")


def test_what_is_not_http_is_refused_and_hung_up_on() -> None:
    async def check(api: Api, address: Address) -> bytes:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"hello\r\n\r\n")
        found = await reader.read()
        writer.close()
        return found

    assert wires.run(check).startswith(b"HTTP/1.1 400 ")


def test_a_head_request_gets_no_body() -> None:
    said = wires.get("/healthz").replace(b"GET", b"HEAD", 1) + wires.get("/healthz")

    async def check(api: Api, address: Address) -> bytes:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(said)
        first = await wires.headers(reader)
        second = await wires.answer(reader)
        writer.close()
        return first[:12] + second[1]

    assert wires.run(check) == b"HTTP/1.1 200ok"


def test_large_answers_are_packed_where_the_client_can_unpack() -> None:
    async def check(api: Api, address: Address) -> tuple[bytes, int]:
        api.create(CONFIGMAPS, doors.named("big") | {"data": {"x": "y" * 200_000}})
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.get(f"{MAPS}/big", "Accept-Encoding: gzip"))
        _, packed = await wires.answer(reader)
        writer.write(wires.get(f"{MAPS}/big"))
        _, plain = await wires.answer(reader)
        writer.close()
        return gzip.decompress(packed)[:30], len(plain) - len(gzip.decompress(packed))

    assert wires.run(check) == (b'{"kind":"ConfigMap","apiVersio', 0)


def test_a_watch_is_a_chunk_per_event_until_its_time_is_up() -> None:
    async def check(api: Api, address: Address) -> list[bytes]:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.get(f"{MAPS}?watch=1&timeoutSeconds=1") + wires.get("/healthz"))
        await wires.headers(reader)
        api.create(CONFIGMAPS, doors.named("c"))
        seen = [await wires.chunk(reader), await wires.chunk(reader)]
        seen.append((await wires.answer(reader))[1])
        writer.close()
        return seen

    event, end, after = wires.run(check)
    assert (json.loads(event)["type"], end, after) == ("ADDED", b"", b"ok")


def watched(target: str, **headers: str) -> list[dict[str, object]]:
    """The first two events of a watch of two objects."""

    async def check(api: Api, address: Address) -> list[bytes]:
        api.create(CONFIGMAPS, doors.named("c"))
        api.create(CONFIGMAPS, doors.named("d"))
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.get(target, *(f"{name}: {value}" for name, value in headers.items())))
        await wires.headers(reader)
        seen = [await wires.chunk(reader), await wires.chunk(reader)]
        writer.close()
        return seen

    return [json.loads(event) for event in wires.run(check)]


def test_the_end_of_initial_events_is_marked() -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    _, mark = watched(f"{MAPS}?{query}&fieldSelector=metadata.name%3Dc")
    metadata = {"resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert mark == {
        "type": "BOOKMARK",
        "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata},
    }


def test_only_the_first_table_of_a_watch_has_columns() -> None:
    first, second = watched(f"{MAPS}?watch=1", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    columns = [bool(event["object"]["columnDefinitions"]) for event in (first, second)]  # type: ignore[index]
    assert columns == [True, False]


def test_metadata_alone_can_be_watched() -> None:
    first, _ = watched(f"{MAPS}?watch=1", Accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert first["object"]["kind"] == "PartialObjectMetadata"  # type: ignore[index]


def test_a_watch_that_comes_too_late_is_told_in_the_stream() -> None:
    async def check(api: Api, address: Address) -> list[bytes]:
        for number in range(1200):
            api.create(CONFIGMAPS, doors.named(f"c{number}"))
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.get(f"{MAPS}?watch=1&resourceVersion=5") + wires.get("/healthz"))
        await wires.headers(reader)
        seen = [await wires.chunk(reader), await wires.chunk(reader), (await wires.answer(reader))[1]]
        writer.close()
        return seen

    event, end, after = wires.run(check)
    status = json.loads(event)
    assert (status["type"], status["object"]["code"], status["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert (end, after) == (b"", b"ok")


def test_a_watcher_that_does_not_read_is_cut() -> None:
    async def check(api: Api, address: Address) -> int:
        reader, writer = await asyncio.open_connection(address.host, address.port, limit=1000)
        writer.write(wires.get(f"{MAPS}?watch=1"))
        await wires.headers(reader)
        for number in range(400):
            api.create(CONFIGMAPS, doors.named(f"c{number}") | {"data": {"x": "y" * 50_000}})
            await asyncio.sleep(0)
        writer.close()
        return len(api.state.store.collection(CONFIGMAPS).watchers)

    limits = structs.replace(application.LIMITS, unsent_bytes=100_000)
    assert wires.run(check, ListenOptions(limits=limits)) == 0


def test_a_watcher_that_sends_nonsense_is_cut() -> None:
    async def check(api: Api, address: Address) -> bytes:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.get(f"{MAPS}?watch=1"))
        await wires.headers(reader)
        writer.write(b"hello\r\n\r\n")
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    assert wires.run(check) == b""


def test_a_client_that_hangs_up_is_forgotten() -> None:
    async def check(api: Api, address: Address) -> int:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.get(f"{MAPS}?watch=1"))
        await wires.headers(reader)
        writer.close()
        watchers = api.state.store.collection(CONFIGMAPS).watchers
        while watchers:
            await asyncio.sleep(0)
        return len(watchers)

    assert wires.run(check) == 0


TOKENS = {
    "none": ("/api/v1/pods", "", 401),
    "another": ("/api/v1/pods", "Authorization: Bearer wrong", 401),
    "the right one": ("/api/v1/pods", "Authorization: Bearer secret", 200),
    "none, for the health": ("/readyz", "", 200),
}


@pytest.mark.parametrize("path, header, code", TOKENS.values(), ids=TOKENS)
def test_a_token_is_asked_for(path: str, header: str, code: int) -> None:
    said = wires.get(path, *([header] if header else ()))
    assert wires.talk(said, listening=ListenOptions(token="secret"))[0][0] == code


def test_other_machines_are_not_served_unless_told() -> None:
    async def check() -> None:
        async with server.serve(doors.door(), ListenOptions(host="0.0.0.0")):
            pass

    with pytest.raises(ValueError, match="set `anywhere`"):
        asyncio.run(check())


def test_tls_with_an_authority_of_our_own(tmp_path: Path) -> None:
    made = server.make_certificates(tmp_path)

    async def check(api: Api, address: Address) -> tuple[str, int]:
        context = ssl.create_default_context(cafile=str(made.authority))
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
        writer.write(wires.get("/healthz"))
        code, _ = await wires.answer(reader)
        writer.close()
        return address.url.partition(":")[0], code

    assert wires.run(check, ListenOptions(certificates=made)) == ("https", 200)


def test_the_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert server.make_certificates(tmp_path).key.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("ca.key"))


def test_a_field_name_cannot_add_a_header() -> None:
    """The name comes back in a Warning header."""
    evil = b'{"metadata":{"name":"c"},"x\\r\\nX-Injected: yes\\r\\n\\r\\n<script>":1}'

    async def check(api: Api, address: Address) -> bytes:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wires.post(f"{MAPS}?fieldValidation=Warn", evil))
        head = await wires.headers(reader)
        writer.close()
        return head

    head = wires.run(check)
    assert head.startswith(b"HTTP/1.1 201 ")
    assert [line.partition(b":")[0] for line in head.split(b"\r\n")[1:-2]] == [
        b"Content-Type",
        b"Content-Length",
        b"Cache-Control",
        b"Warning",
    ]


def test_a_body_of_a_gigabyte_is_refused_before_it_is_sent() -> None:
    asked = f"POST {MAPS} HTTP/1.1\r\nContent-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n"

    async def check(api: Api, address: Address) -> bytes:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(asked.encode())
        found = await reader.read()
        writer.close()
        return found

    assert wires.run(check).startswith(b"HTTP/1.1 413 ")


FOREIGN = {
    "a form of another site": (["Origin: http://evil.example"], 403),
    "a name that an attacker made lead here": (["Host: evil.example"], 421),
    "a page of another site": (["Sec-Fetch-Site: cross-site"], 403),
}


@pytest.mark.parametrize("headers, code", FOREIGN.values(), ids=FOREIGN)
def test_web_pages_cannot_use_a_server_without_a_token(headers: list[str], code: int) -> None:
    said = wires.post(MAPS, MADE, *headers)

    async def check(api: Api, address: Address) -> tuple[int, int]:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(said)
        found = await wires.answer(reader)
        writer.close()
        return found[0], len(api.list(CONFIGMAPS).items)

    assert wires.run(check) == (code, 0)


def test_a_proxy_that_knows_the_token_may_pass_on_the_headers_of_a_browser() -> None:
    passed = wires.post(MAPS, MADE, "Authorization: Bearer secret", "Origin: http://localhost:8001")
    assert wires.talk(passed, listening=ListenOptions(token="secret"))[0][0] == 201


def test_documents_are_made_once_for_all_accept_headers_that_want_the_same() -> None:
    paths = NonResourcePaths(doors.door().state, {})
    first, *others = (
        paths.answer(Request("GET", b"/" * number + b"apis", {"accept": f"application/json,x/{number}"}))
        for number in range(1, 20)
    )
    assert first is not None
    assert all(other is first for other in others)
