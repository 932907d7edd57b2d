"""cluster-autoscaler hears which node groups would admit most of its waiting pods, over gRPC."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from grpc import aio

from numalign.api.decode import protobuf
from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.placement.settings import Settings
from numalign.process import certificates, rpc
from numalign.scheduler.capacity import expander, expandermessages, templates
from numalign.scheduler.capacity.expander import Expander
from numalign.scheduler.capacity.expandermessages import NODE, POD, REQUEST, RESPONSE
from numalign.scheduler.http import expanderserver
from tests.placing import Placing
from tests.unit.placement.test_engine import report
from tests.unit.scheduler.capacity.test_service import cluster

METHOD = "/grpcplugin.Expander/BestOptions"


def amounts(**given: str) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"text": amount}} for name, amount in given.items()]


def pod(name: str, cpu: int) -> bytes:
    """A Guaranteed pod as cluster-autoscaler sends it."""
    own = {"limits": amounts(cpu=str(cpu), memory="1Gi"), "requests": amounts(cpu=str(cpu), memory="1Gi")}
    tree = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "resources": own}]}}
    return protobuf.encode_message(tree, POD)


def node(name: str, cpus: int, zones: tuple[int, ...] = ()) -> bytes:
    """A template; with zones, its report is in an annotation."""
    written = encode(normalise.encode(report("t", cpus=zones))).decode() if zones else ""
    notes = protobuf.entries({templates.TOPOLOGY: written}) if zones else []
    offered = amounts(cpu=str(cpus), memory="64Gi", pods="110")
    return protobuf.encode_message(
        {"metadata": {"name": name, "annotations": notes}, "status": {"allocatable": offered}}, NODE
    )


def request(groups: Mapping[str, bytes], counts: Mapping[str, int], pods: list[bytes], *, typed: bool = False) -> bytes:
    """`typed`: in the fields that cluster-autoscaler used before 1.35."""
    nodes = [{"key": name, "value": data} for name, data in groups.items()]
    options = [
        {"group": name, "count": counts[name], ("pods" if typed else "pod_bytes"): pods, "debug": "from CA"}
        for name in groups
    ]
    return protobuf.encode_message({"options": options, ("nodes" if typed else "node_bytes"): nodes}, REQUEST)


async def answered(body: bytes, known: Placing, tls: bool = False, is_synced: bool = True) -> dict[str, str]:
    """By group that is kept, what is said about it; over a real connection."""
    pair = certificates.self_signed(("localhost",), datetime.now(UTC)) if tls else None
    made = (pair.certificate.encode(), pair.key.encode()) if pair is not None else None
    answerer = Expander(known.cluster, Settings())
    async with expanderserver.serving(answerer, ("127.0.0.1", 0), made, lambda: is_synced) as port:
        if made is None:
            channel = aio.insecure_channel(f"127.0.0.1:{port}")
        else:
            channel = aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(made[0]))
        async with channel:
            found = protobuf.decode_message(await channel.unary_unary(METHOD)(body, timeout=30), RESPONSE)
    return {each["group"]: each["debug"] for each in found.get("options", ())}


def asked(body: bytes, known: Placing | None = None, **how: bool) -> dict[str, str]:
    return asyncio.run(answered(body, known or cluster(a=8), **how))


SIXES = [pod(f"p{number}", 6) for number in range(4)]
WIDE = node("w", 16, zones=(8, 8))


@pytest.mark.parametrize("typed", [False, True], ids=["bytes", "typed fields"])
def test_groups_whose_kubelets_would_reject_the_pods_are_dropped(typed: bool) -> None:
    groups = {"narrow": node("n", 16, zones=(4, 4, 4, 4)), "wide": node("w", 16, zones=(8, 8))}
    found = asked(request(groups, {"narrow": 2, "wide": 2}, SIXES, typed=typed))
    assert found == {"wide": "numalign: 4 of 4 pods fit on 2 new node(s), as their kubelets will place them"}


def test_groups_that_admit_as_many_are_all_kept() -> None:
    groups = {"one": node("n", 16, zones=(8, 8)), "two": node("w", 32, zones=(16, 16))}
    assert set(asked(request(groups, {"one": 2, "two": 1}, SIXES))) == {"one", "two"}
    assert set(asked(request(groups, {"one": 1, "two": 1}, SIXES))) == {"two"}


def test_a_group_of_which_nothing_is_known_counts_by_its_totals() -> None:
    found = asked(request({"any": node("n", 16)}, {"any": 2}, SIXES))
    assert found == {
        "any": "numalign: 4 of 4 pods fit on 2 new node(s), by totals, because nothing is known about their zones"
    }


def test_no_group_is_kept_where_none_would_help() -> None:
    assert asked(request({"narrow": node("n", 16, zones=(4, 4))}, {"narrow": 9}, SIXES)) == {}


def test_the_connection_may_be_encrypted() -> None:
    pytest.importorskip("cryptography")
    assert set(asked(request({"wide": node("w", 16, zones=(8, 8))}, {"wide": 2}, SIXES), tls=True)) == {"wide"}


def test_clients_that_say_nothing_are_disconnected_and_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setattr(rpc, "CONNECTIONS", 2)
    monkeypatch.setattr(rpc, "HANDSHAKE", 100)
    pair = certificates.self_signed(("localhost",), datetime.now(UTC))
    made, known = (pair.certificate.encode(), pair.key.encode()), Expander(cluster(a=8).cluster, Settings())

    async def silent_and_then_one_who_asks() -> bytes:
        async with expanderserver.serving(known, ("127.0.0.1", 0), made, lambda: True) as port:
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            for reader, writer in silent:
                with contextlib.suppress(ConnectionError):
                    await reader.read()
                writer.close()
            channel = aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(made[0]))
            async with channel:
                body = request({"wide": WIDE}, {"wide": 2}, SIXES)
                answer: bytes = await channel.unary_unary(METHOD)(body, timeout=120, wait_for_ready=True)
                return answer

    assert protobuf.decode_message(asyncio.run(silent_and_then_one_who_asks()), RESPONSE)["options"]


@pytest.mark.parametrize(
    "body, code",
    [
        (b"\xff\xff", "INVALID_ARGUMENT"),
        (request({}, {}, []) + protobuf.encode_field(1, protobuf.encode_field(1, b"lost")), "INVALID_ARGUMENT"),
        (request({"g": b"\x0a\xff"}, {"g": 1}, SIXES), "INVALID_ARGUMENT"),
        (request({"g": node("n", 4)}, {"g": 1}, [b"\x12\x04junk"]), "INVALID_ARGUMENT"),
    ],
    ids=["no protobuf", "no node", "bad node", "bad pod"],
)
def test_requests_that_cannot_be_read_are_refused(body: bytes, code: str) -> None:
    with pytest.raises(aio.AioRpcError) as refused:
        asked(body)
    assert refused.value.code().name == code


def test_questions_before_the_caches_are_synced_are_refused() -> None:
    with pytest.raises(aio.AioRpcError) as refused:
        asked(request({}, {}, []), is_synced=False)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_negative_and_huge_numbers_of_nodes_are_no_reason_to_fail() -> None:
    groups = {"wide": node("w", 16, zones=(8, 8))}
    assert asked(request(groups, {"wide": -1}, SIXES)) == {}
    assert set(asked(request(groups, {"wide": (1 << 31) - 1}, SIXES))) == {"wide"}


def test_a_group_with_an_annotation_that_makes_no_sense_counts_by_its_totals_and_spoils_no_other() -> None:
    notes = protobuf.entries({templates.MACHINE: "unheard-of"})
    odd = protobuf.encode_message(
        {
            "metadata": {"name": "o", "annotations": notes},
            "status": {"allocatable": amounts(cpu="16", memory="64Gi", pods="110")},
        },
        NODE,
    )
    found = asked(request({"odd": odd, "wide": node("w", 16, zones=(8, 8))}, {"odd": 2, "wide": 2}, SIXES))
    assert set(found) == {"odd", "wide"}
    assert "4 of 4 pods fit on 2 new node(s), by totals: " in found["odd"]


def crowded(containers: int, resources: int = 1) -> bytes:
    """A pod with so many containers, each of which asks for so many resources of its own."""
    made = [
        {
            "name": f"c{number}",
            "resources": {
                "limits": [{"key": f"example.com/{number}-{each}", "value": {"text": "1"}} for each in range(resources)]
            },
        }
        for number in range(containers)
    ]
    return protobuf.encode_message({"metadata": {"name": "p"}, "spec": {"containers": made}}, POD)


def test_a_request_for_too_many_different_pods_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = request({"one": WIDE, "two": WIDE}, {"one": 2, "two": 2}, SIXES)
    with monkeypatch.context() as patch:
        patch.setattr(expandermessages, "MOST_PODS", 3)
        with pytest.raises(aio.AioRpcError) as refused:
            asked(body)
    assert refused.value.code().name == "INVALID_ARGUMENT"
    assert set(asked(body)) == {"one", "two"}


@pytest.mark.parametrize(
    "body, why",
    [
        (b"\x0a\x00" * 1_001, "more than 1,000 entries of options"),
        (protobuf.encode_field(1, b"\x2a\x00" * 8_193), "more than 8,192 entries of pod_bytes"),
        (b"\x1a\x00" * 8_193, "more than 8,192 entries of node_bytes"),
        (request({"g": WIDE}, {"g": 1}, [crowded(257)]), "more than 256 entries of containers"),
        (request({"g": WIDE}, {"g": 1}, [crowded(1, 129)]), "more than 128 entries of limits"),
        (request({"g": WIDE}, {"g": 1}, [crowded(250, 9)]), "has more than 1,000 different resources"),
        (request({"g": WIDE}, {"g": 1}, [pod("x" * (1 << 20), 1)]), "at most 1,048,576 are read"),
    ],
    ids=["options", "pods", "nodes", "containers", "amounts", "resources", "bytes"],
)
def test_a_message_of_a_stranger_that_would_take_much_memory_is_refused(body: bytes, why: str) -> None:
    with pytest.raises((BadObject, protobuf.BadProtobuf), match=why):
        asyncio.run(Expander(cluster(a=8).cluster, Settings()).best_options(expandermessages.decode_request(body)))


def test_resources_of_earlier_requests_are_forgotten() -> None:
    known = Expander(cluster(a=8).cluster, Settings())

    async def answered_after(odd: bytes) -> int:
        with pytest.raises(BadObject):
            await known.best_options(expandermessages.decode_request(request({"g": WIDE}, {"g": 1}, [odd])))
        return len(await known.best_options(expandermessages.decode_request(request({"g": WIDE}, {"g": 2}, SIXES))))

    assert asyncio.run(answered_after(crowded(250, 9))) == 1


def test_other_tasks_run_while_a_large_request_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expander, "AT_ONCE", 2)
    groups = {name: node("w", 16, zones=(8, 8)) for name in "abcdef"}
    body, turns = request(groups, dict.fromkeys(groups, 2), SIXES), list[int]()

    async def answering() -> int:
        made = asyncio.ensure_future(
            Expander(cluster(a=8).cluster, Settings()).best_options(expandermessages.decode_request(body))
        )
        while not made.done():
            turns.append(1)
            await asyncio.sleep(0)
        return len(made.result())

    assert asyncio.run(answering()) == 6
    assert len(turns) > 4
