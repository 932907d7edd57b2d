"""The scheduler's pages: true health, metrics under kube-scheduler's names, and nothing without authorization."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.kube.leader.lease import Election
from numalign.process.serve import PageRequest, PageResponse, Pages
from numalign.scheduler import main
from numalign.scheduler.http import authz
from numalign.scheduler.http import pages as serving
from numalign.scheduler.main import Scheduler, Setup
from numalign.scheduler.snapshot import files
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from tests.embedded import schedulerstories as stories

QUERIES = ("", "?pod=default/p", "?pod=default/q")


def shown(*paths: str, election: Election | None = None, run: bool = True, **how: Any) -> list[PageResponse]:
    """The pages of a scheduler on a cluster without nodes, after a while."""

    async def look() -> list[PageResponse]:
        clock = virtualtime.clock(random.Random(1))
        async with cluster.running([], clock, random.Random(1)) as embedded:
            embedded.api.create(PODS, stories.pod("p", 1))
            async with Client(embedded.access(), clock=clock) as client:
                scheduler = Scheduler(Setup(instance="x"), client, election)
                running = asyncio.ensure_future(scheduler.run() if run else asyncio.sleep(100))
                await asyncio.sleep(20)
                guard = authz.guard(client) if how.get("guarded") else None
                pages = Pages(serving.pages(scheduler, main.defaults(), election), guard)
                found = [await pages.answer(_asked(path, **how)) for path in paths]
                running.cancel()
                return found

    return virtualtime.run(look())


def _asked(path: str, method: str = "GET", body: bytes = b"", **_: Any) -> PageRequest:
    place, query = path.partition("?")[::2]
    pairs = dict(part.partition("=")[::2] for part in query.split("&") if part)
    return PageRequest(method=method, path=place, query=pairs, body=body)


def text(answer: PageResponse) -> str:
    return answer.body if isinstance(answer.body, str) else answer.body.decode()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/informer-sync"])
def test_a_scheduler_that_runs_is_well(path: str) -> None:
    assert shown(path) == [PageResponse("ok")]


def test_one_that_has_not_looked_yet_lives_but_is_not_ready() -> None:
    alive, ready = shown("/livez", "/readyz", run=False)
    assert alive.status == 200
    assert (ready.status, "[-]informer-sync failed" in text(ready)) == (500, True)


def test_a_check_can_be_left_out_and_all_can_be_listed() -> None:
    assert shown("/readyz?exclude=informer-sync", run=False)[0].status == 500
    assert text(shown("/readyz?verbose&exclude=informer-sync")[0]).endswith(
        "[+]informer-sync excluded: ok\nreadyz check passed\n"
    )
    assert text(shown("/readyz?verbose")[0]).endswith("readyz check passed\n")
    assert shown("/readyz/nothing")[0].status == 404


def test_a_leader_that_does_not_renew_is_not_well() -> None:
    election = leading.election("a", "kube-system", identity="me")
    healthy = serving._is_renewing
    assert healthy(election, 0.0)
    election._renewed_at = 0.0
    assert healthy(election, 34.0)
    assert not healthy(election, 36.0)


def test_metrics_have_the_stock_names_and_the_numbers() -> None:
    result = text(shown("/metrics")[0])
    assert 'scheduler_schedule_attempts_total{result="unschedulable",profile="numalign"}' in result
    assert "# TYPE scheduler_pending_pods gauge" in result
    assert "scheduler_pod_scheduling_sli_duration_seconds" in result


def test_what_probes_saw_is_counted() -> None:
    *_, result = shown("/readyz", "/readyz", "/livez", "/readyz/informer-sync", "/metrics/slis", run=False)
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1' in text(result)
    assert 'kubernetes_healthcheck{name="informer-sync",type="readyz"} 0' in text(result)
    assert 'kubernetes_healthchecks_total{name="informer-sync",type="readyz",status="error"} 2' in text(result)
    assert "process_start_time_seconds" in text(result)


def test_the_leader_serves_the_requests_of_pods() -> None:
    result = text(shown("/metrics/resources")[0])
    who = 'namespace="default",pod="p",node="",scheduler="numalign",priority="0"'
    assert f'kube_pod_resource_request{{{who},resource="cpu",unit="cores"}} 1\n' in result
    assert f'kube_pod_resource_limit{{{who},resource="cpu",unit="cores"}} 1\n' in result


def test_standby_replicas_serve_no_metrics_of_pods() -> None:
    election = leading.election("a", "kube-system", identity="me")
    (result,) = shown("/metrics/resources", election=election, run=False)
    assert (result.status, result.body) == (200, "")


def test_metrics_have_what_the_system_knows_of_the_process() -> None:
    result = text(shown("/metrics")[0])
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"):
        assert re.search(rf"^process_{name} [0-9.e+]+$", result, re.MULTILINE)


def test_the_state_names_the_pods_that_wait() -> None:
    result = json.loads(shown("/debug/state")[0].body)
    waiting = [each["pod"] for pods in result["queue"].values() for each in pods]
    assert waiting == ["default/p"]
    assert json.loads(shown("/debug/state?pod=a/b")[0].body)["queue"]["unschedulable"] == []


def test_the_configuration_is_shown() -> None:
    result = json.loads(shown("/configz")[0].body)["kubescheduler.config.k8s.io"]
    assert result["profiles"][0]["schedulerName"] == "numalign"


def test_strangers_see_health_and_nothing_else() -> None:
    health, metrics, nothing = shown("/healthz", "/metrics", "/no-such-page", guarded=True)
    assert (health.status, metrics.status, nothing.status) == (200, 403, 404)


PUT = {
    "a number": ("", b"4", 200, "successfully set verbosity to 4"),
    "a word": ("", b"x", 400, "PUT a number"),
    "a huge number": ("", b"9" * 5000, 400, "PUT a number"),
    "one pod": ("?pod=default/p", b"4", 200, "to 4 for pod=default/p for 600 s"),
    "one node for a minute": ("?node=n&seconds=60", b"5", 200, "to 5 for node=n for 60 s"),
    "a component": ("?component=scheduler.bind", b"4", 200, "for component=scheduler.bind for 600 s"),
    "a module": ("?component=scheduler.bind.binder", b"4", 200, "for component=scheduler.bind.binder for 600 s"),
    "no component": ("?component=scheduler.bnid", b"4", 400, '"scheduler.bnid" is no package or module of numalign'),
    "a component of others": ("?component=..json", b"4", 400, "is no package or module"),
    "everything for a while": ("?seconds=30", b"4", 200, "to 4 for everything for 30 s"),
    "no such rule": ("?pod=a/b&seconds=0", b"4", 404, "no rule for pod=a/b"),
    "for ever": ("?pod=a/b&seconds=99999999", b"4", 400, "seconds is a whole number"),
    "a negative time": ("?pod=a/b&seconds=-1", b"4", 400, "seconds is a whole number"),
    "an unknown field": ("?pdo=a/b", b"4", 400, "the query may have component, pod, node and seconds"),
    "a huge name": (f"?pod={'a' * 5000}", b"4", 400, "the query may have"),
}


@pytest.mark.parametrize("query, body, status, words", PUT.values(), ids=PUT)
def test_verbosity_is_put_for_all_or_for_one_thing(query: str, body: bytes, status: int, words: str) -> None:
    answer = serving._verbosity(_asked(f"/debug/flags/v{query}", "PUT", body))
    listed = json.loads(text(serving._verbosity(_asked("/debug/flags/v"))))
    for rule in listed["rules"]:
        fields = "&".join(f"{name}={rule[name]}" for name in serving.RULE_FIELDS)
        assert serving._verbosity(_asked(f"/debug/flags/v?{fields}&seconds=0", "PUT", b"2")).status == 200
    serving._verbosity(_asked("/debug/flags/v", "PUT", b"2"))
    assert (answer.status, words in text(answer)) == (status, True)
    assert len(listed["rules"]) == int(status == 200 and bool(query))


def test_verbosity_needs_authorization() -> None:
    (refused,) = shown("/debug/flags/v", guarded=True, method="PUT", body=b"4")
    assert refused.status == 403


def test_decisions_are_shown_with_what_they_were_made_of() -> None:
    every, mine, others = (json.loads(each.body) for each in shown(*(f"/debug/decisions{q}" for q in QUERIES)))
    assert every == mine
    assert {(each["pod"], each["result"]) for each in mine} == {("default/p", "unschedulable")}
    assert mine[0]["message"] == "no nodes available to schedule pods"
    assert others == []


def test_a_dump_can_be_loaded() -> None:
    taken = files.read(text(shown("/debug/dump")[0]).encode(), "dump")
    assert taken.pod("default/p") is not None
    assert taken.state is not None
    assert next(pods for pods in taken.state.queue.values() if pods)[0]["pod"] == "default/p"


OURS = (
    "numalign_phase_duration_seconds",
    "numalign_pods{",
    "numalign_rows_evaluated_total",
    "numalign_shapes",
    "numalign_relists_total",
    "scheduler_inflight_events",
    "leader_election_master_status",
)


def test_metrics_have_our_own_names_too() -> None:
    election = leading.election("numalign", "kube-system", identity="me")
    result = text(shown("/metrics", election=election)[0])
    assert [name for name in OURS if name not in result] == []
    assert 'leader_election_master_status{name="numalign"} 1' in result


def test_every_metric_is_in_the_documentation() -> None:
    result = text(shown("/metrics", election=leading.election("numalign", "kube-system", identity="me"))[0])
    names = {line.split()[2] for line in result.splitlines() if line.startswith("# TYPE")}
    page = (Path(__file__).parents[4] / "docs" / "use" / "scheduler-metrics.md").read_text()
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
