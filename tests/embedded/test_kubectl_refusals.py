"""Bad input gets the answer of the real API server: the same requests to both, word by word, and what kubectl says."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import random
from typing import Any

import pytest

from numalign.simulator import clock, cluster
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Address
from numalign.simulator.apiserver.verbs.api import Api
from tests.conftest import require
from tests.embedded import badrequests, realserver, refusals
from tests.embedded.kubectl import Kubectl, Like

RECORDED = refusals.recorded()


async def asked_of_ours() -> dict[str, list[Any]]:
    """The API server alone: no controller changes what the requests are about."""
    chances = random.Random(1)
    api = Api(clock.real(chances), chances, admission=admission)
    cluster.create_first_objects(api)
    async with server.serve(api) as address:
        return await asyncio.to_thread(answers, address)


def answers(address: Address) -> dict[str, list[Any]]:
    with contextlib.closing(http.client.HTTPConnection(address.host, address.port, timeout=60)) as connection:
        refusals.furnish(connection)
        return refusals.answers(connection)


@pytest.fixture(scope="module")
def ours() -> dict[str, list[Any]]:
    return asyncio.run(asked_of_ours())


@pytest.mark.parametrize("name", badrequests.REQUESTS)
def test_our_answer_is_the_recorded_one(ours: dict[str, list[Any]], name: str) -> None:
    assert ours[name] == RECORDED[name]


def test_every_recorded_answer_is_a_refusal() -> None:
    assert [name for name, (code, _) in RECORDED.items() if code < 400] == []


@pytest.mark.built
@pytest.mark.slow
def test_the_real_server_still_answers_as_recorded() -> None:
    require(realserver.programs(), "Go, to build etcd and kube-apiserver")
    assert refusals.asked_of_the_real_server() == RECORDED


POT = "{apiVersion: v1, kind: Pot, metadata: {name: a}}"
COLORFUL = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: x, image: y, color: 1}]}}"
NAMELESS = "{apiVersion: v1, kind: Pod, metadata: {name: A_b}, spec: {containers: [{name: x}]}}"
SETTINGS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, colour: 1}"
NO_PODS = 'Unable to find "/v1, Resource=pods" that match label selector'
SAID = {
    "a missing pod": ("get pod nobody", "", 'Error from server (NotFound): pods "nobody" not found\n'),
    "a missing kind": ("get pots", "", """error: the server doesn't have a resource type "pots"\n"""),
    "a bad selector": (
        "get pods -l 'a b'",
        "",
        f'Error from server (BadRequest): {NO_PODS} "a b", field selector "": unable to parse requirement: found '
        "'b', expected: in, notin, =, ==, !=, gt, lt\n",
    ),
    "a bad field": (
        "get pods --field-selector=spec.color=red",
        "",
        f'Error from server (BadRequest): {NO_PODS} "", field selector "spec.color=red": field label not supported: '
        "spec.color\n",
    ),
    "an unknown kind": (
        "apply -f -",
        POT,
        'error: resource mapping not found for name: "a" namespace: "" from "STDIN": no matches for kind "Pot" in '
        'version "v1"\nensure CRDs are installed first\n',
    ),
    "malformed YAML": (
        "apply -f -",
        "kind: [Pod\n",
        "error: error parsing STDIN: error converting YAML to JSON: yaml: ...\n",
    ),
    "an unknown field": (
        "apply -f -",
        COLORFUL,
        'Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: '
        'strict decoding error: unknown field "spec.containers[0].color"\n',
    ),
    "several things wrong": (
        "create -f -",
        NAMELESS,
        'The Pod "A_b" is invalid: \n* metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain ...\n'
        "* spec.containers[0].image: Required value\n",
    ),
    "a field that apply does not know": (
        "apply --server-side -f -",
        SETTINGS,
        "Error from server: failed to create typed patch object (.../settings; /v1, Kind=ConfigMap): .colour: field "
        "not declared in schema\n",
    ),
    "a patch that is a word": (
        "patch namespace default -p hello",
        "",
        "Error from server (BadRequest): json: cannot unmarshal string into Go value of type map[string]interface {}\n",
    ),
    "a patch of the wrong kind": (
        "patch namespace default --type=json -p '{}'",
        "",
        "Error from server (BadRequest): error decoding patch: json: cannot unmarshal object into Go value of type "
        "[]handlers.jsonPatchOp\n",
    ),
    "a patch to the wrong type": (
        'patch deployment web -p \'{"spec":{"replicas":"x"}}\'',
        "",
        'The request is invalid: patch: Invalid value: "map[spec:map[replicas:x]]": unrecognized type: int32\n',
    ),
    "a label with a space": (
        "label deployment web 'a b=c'",
        "",
        'The Deployment "web" is invalid: metadata.labels: Invalid value: "a b": name part must consist of ...\n',
    ),
    "a namespace that is not there": (
        "-n nowhere run x --image=a",
        "",
        'Error from server (NotFound): namespaces "nowhere" not found\n',
    ),
    "a namespace that stays": (
        "delete namespace kube-system",
        "",
        '...Error from server (Forbidden): namespaces "kube-system" is forbidden: this namespace may not be deleted\n',
    ),
    "a field that explain does not know": (
        "explain pod.spec.color",
        "",
        'KIND: Pod\nVERSION: v1\n\nerror: field "color" does not exist\n',
    ),
    "a path that leads nowhere": (
        "get --raw /nowhere",
        "",
        "Error from server (NotFound): the server could not find the requested resource\n",
    ),
}


@pytest.fixture(scope="module")
def refused(anywhere: Kubectl) -> Kubectl:
    anywhere.said("create deployment web --image=a --replicas=0")
    return anywhere


@pytest.mark.parametrize("line, stdin, text", SAID.values(), ids=SAID)
def test_what_kubectl_says(refused: Kubectl, line: str, stdin: str, text: str) -> None:
    assert refused(line, stdin) == (1, Like(text))
