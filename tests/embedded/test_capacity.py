"""A live extender counts how many more pods fit, over HTTPS and gRPC, and survives what clients send it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest

from numalign.api.decode import protobuf
from numalign.lab import controlplane
from numalign.scheduler.capacity.expandermessages import RESPONSE
from tests.embedded import clusters
from tests.embedded.test_extender import Keys, answers, extending, make_keys, refused_by_size
from tests.unit.scheduler.capacity.test_expander import METHOD, SIXES, node, request

PATH = "/v1/capacity"
SHAPE = {"name": "one", "requests": {"cpu": "1", "memory": "100Mi"}}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


def asked(url: str, keys: Keys, body: Any, path: str = PATH) -> Any:
    sent = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(sent, timeout=30, context=keys.context()) as answer:
        return json.loads(answer.read())


def test_counts_simulations_and_expansions_come_from_one_process(tmp_path: Path, keys: Keys) -> None:
    port = controlplane.free_port()
    line = f"extender run --pages-port 0 --expander-port {port} --port"
    with clusters.up(tmp_path, "--nodes 2") as up, extending(tmp_path, up, keys, line) as url:
        (found,) = asked(url, keys, {"shapes": [SHAPE]})["shapes"]
        assert (found["roomyNodes"], found["bound"]) == (2, "exact")
        assert found["count"] == sum(group["count"] * len(group["nodes"]) for group in found["nodes"]) > 0
        again = asked(url, keys, {"shapes": [{**SHAPE, "replicas": found["count"] + 1}], "allOrNothing": True})
        assert again["allOrNothing"]["fits"] == "no"
        whole = {"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": [{"metadata": {"name": "nowhere"}}]}}
        assert asked(url, keys, whole, "/simulate/prioritize") == [{"Host": "nowhere", "Score": 0}]
        trusted = grpc.ssl_channel_credentials(keys.authority.read_bytes())
        with grpc.secure_channel(f"127.0.0.1:{port}", trusted) as channel:
            body = request({"wide": node("w", 16, zones=(8, 8))}, {"wide": 2}, SIXES)
            kept = protobuf.decode_message(channel.unary_unary(METHOD)(body, timeout=30), RESPONSE)
        assert [each["group"] for each in kept["options"]] == ["wide"]


def test_bad_questions_get_a_clear_status_and_the_extender_lives(tmp_path: Path, keys: Keys) -> None:
    with clusters.up(tmp_path, "--nodes 1") as up, extending(tmp_path, up, keys) as url:
        bodies: dict[str, Any] = {
            "no shapes": {},
            "a list": [],
            "negative": {"shapes": [{"requests": {"cpu": "-1"}}]},
            "no quantity": {"shapes": [{"requests": {"cpu": "much"}}]},
            "unknown node": {"shapes": [SHAPE], "nodes": {"names": ["nowhere"]}},
            "unknown machine": {"shapes": [SHAPE], "templates": [{"machine": "abacus"}]},
            "10,000 shapes": {"shapes": [SHAPE] * 10_000},
        }
        codes = {name: answers(url, keys, json.dumps(body).encode(), PATH) for name, body in bodies.items()}
        assert codes == dict.fromkeys(bodies, 400)
        assert refused_by_size(url, keys, 100 << 20) == 413
        assert answers(url, keys, b'{"Pod":{},"NodeNames":["a"]}', "/simulate/filter") == 400
        assert answers(url, keys, json.dumps({"shapes": [{"requests": {"cpu": "9E"}}]}).encode(), PATH) == 200
        assert answers(url, keys) == 200
