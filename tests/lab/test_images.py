"""Manifests as other people write them: every image can be pulled, and is there from then on."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode.structs import Wire
from numalign.kube import resources
from numalign.kube.resources import Target
from numalign.lab.accounts import AnyObject
from tests.lab import live as lives
from tests.lab.fleet import TOLD
from tests.lab.live import NAMESPACE, Live

TAG = "nginx:1.25"
DIGEST = "nginx@sha256:4c0fdaa8b6341bfdeca5f18f7837462c80cff90527ee35ef185571e1c327beac"
BOTH = f"registry.example.com:5000/team/web:1.0@{DIGEST.partition('@')[2]}"


def pod(name: str, image: str, policy: str) -> dict[str, Any]:
    made = lives.guaranteed(name, 1, nodeName=TOLD)
    made["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": policy}
    return made


@pytest.mark.parametrize("image", [TAG, DIGEST, BOTH, "nginx"])
@pytest.mark.parametrize("policy", ["IfNotPresent", "Always", "Never"])
def test_pods_run_with_an_image_that_was_pulled_before(single: Live, image: str, policy: str) -> None:
    for number, each in enumerate(("IfNotPresent", policy)):
        single.create(pod(f"web-{number}", image, each))
        assert single.settled(f"web-{number}").status.phase == "Running"


class State(Wire, frozen=True):
    reason: str = ""


class States(Wire, frozen=True):
    waiting: State = State()


class ContainerStatus(Wire, frozen=True):
    state: States = States()


class Status(Wire, frozen=True):
    container_statuses: tuple[ContainerStatus, ...] = ()


class Seen(AnyObject, frozen=True):
    status: Status = Status()


def test_a_pod_that_may_not_pull_waits_for_an_image_that_is_not_there(single: Live) -> None:
    single.create(pod("never", "not-pulled:1", "Never"))
    target: Target[Seen] = resources.of("v1", "pods", "Pod", Seen).at("never", NAMESPACE)

    async def refused() -> bool:
        found = await single.client.get(target)
        return [each.state.waiting.reason for each in found.status.container_statuses] == ["ErrImageNeverPull"]

    assert single.awaited(refused, "the pod does not wait for its image")
