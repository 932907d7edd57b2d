"""The real kube-scheduler with our extender: it schedules, and no kubelet rejects what it binds.

Preemption, which differs by minor version of kube-scheduler, is played with all of them. KUBE_SCHEDULER names the
program of another version."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from numalign.lab import build, controlplane
from numalign.process import certificates
from numalign.process.certificates import Validity
from numalign.scheduler.http import extenderserver
from tests.conftest import require
from tests.embedded import clusters, kubectl
from tests.embedded.clusters import Up
from tests.embedded.kubectl import Kubectl, Like
from tests.embedded.test_real_scheduler import complaints, scheduling

MINORS = ["1.37", *(pytest.param(minor, marks=pytest.mark.slow) for minor in build.EARLIER_SCHEDULERS)]
WAYS = {"with its bind verb": "", "with kube-scheduler's own binder": "--no-bind"}


class Keys(Struct, frozen=True):
    """Files of an authority, the extender and kube-scheduler."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def server(self, end: str) -> Path:
        return self.folder / f"server.{end}"

    def client(self, end: str) -> Path:
        return self.folder / f"client.{end}"

    def context(self) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(self.authority))
        made.load_cert_chain(self.client("crt"), self.client("key"))
        return made


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


def make_keys(folder: Path) -> Keys:
    found = Keys(folder)
    issuer = certificates.authority("test", Validity.of(datetime.now(UTC)))
    found.authority.write_text(issuer.certificate())
    for place, pair in (
        (found.server, issuer.issue("extender", ["127.0.0.1"])),
        (found.client, issuer.issue_client("kube-scheduler")),
    ):
        place("crt").write_text(pair.certificate)
        place("key").write_text(pair.key)
    return found


ALONE = "extender run --pages-port 0 --port"
BESIDE = "scheduler run --port 0 --extender --extender-port"


@contextlib.contextmanager
def extending(folder: Path, up: Up, keys: Keys, line: str = ALONE) -> Iterator[str]:
    """An extender of the cluster; its URL."""
    port = controlplane.free_port()
    process = started(folder, up, keys, port, line)
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(30) == 0


def started(folder: Path, up: Up, keys: Keys, port: int, line: str = ALONE) -> subprocess.Popen[bytes]:
    """An extender that answers."""
    words = (
        f"{line} {port} --kubeconfig {up.kubeconfig} --client-ca {keys.authority}"
        f" --tls-certificate {keys.server('crt')} --tls-key {keys.server('key')}"
    )
    with (folder / "extender.log").open("ab") as said:
        process = subprocess.Popen(clusters.numalign(words), stdout=said, stderr=said)
    clusters.awaited(lambda: answers(f"https://127.0.0.1:{port}", keys) == 200)
    return process


def answers(url: str, keys: Keys, body: bytes = b'{"Pod":{},"NodeNames":[]}', path: str = "/filter") -> int:
    """The status code; 0: no server listens."""
    request = urllib.request.Request(url + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60, context=keys.context()) as answer:
            json.loads(answer.read())
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code
    except urllib.error.URLError:
        return 0


def command(folder: Path, up: Up, keys: Keys, url: str, option: str, minor: str = "1.37") -> list[str]:
    """kube-scheduler, configured as `numalign extender config` says."""
    other = os.environ.get("KUBE_SCHEDULER")
    name = f"kube-scheduler-{minor}" if minor in build.EARLIER_SCHEDULERS else "kube-scheduler"
    program = Path(other) if other else kubectl.program(name)
    require(program, "Go, to build kube-scheduler")
    existing = folder / "before.yaml"
    connection = {"kubeconfig": str(up.kubeconfig), "qps": 500, "burst": 1000}
    existing.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": connection,
            }
        )
    )
    words = (
        f"extender config --url {url} --certificate-authority {keys.authority} -f {existing}"
        f" --client-certificate {keys.client('crt')} --client-key {keys.client('key')} {option}"
    )
    file = folder / "scheduler.yaml"
    file.write_text(subprocess.run(clusters.numalign(words), check=True, capture_output=True, text=True).stdout)
    return [str(program), f"--config={file}", "--secure-port=0"]


def workload(name: str, replicas: int, scheduler: str = "default-scheduler", **wants: str) -> str:
    labels = {"app": name}
    container = {"name": "main", "image": "a", "resources": {"limits": {"memory": "100Mi", **wants}}}
    return yaml.safe_dump(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"schedulerName": scheduler, "containers": [container]},
                },
            },
        }
    )


NO_ZONE = (
    "0/4 nodes are available: 4 cannot align container "
    "(container main needs 10 CPUs in one NUMA zone, best zone has 6..."
)


@pytest.mark.parametrize("option", WAYS.values(), ids=WAYS)
def test_a_burst_through_the_extender_fills_every_zone_and_nothing_bounces(
    tmp_path: Path, anywhere: Kubectl, keys: Keys, option: str
) -> None:
    """Four nodes of two zones with 16 CPUs: two pods of ten CPUs fit on each. By totals a third one would."""
    with (
        clusters.up(tmp_path, "--nodes 4 --machine 2x16 --no-blind-scheduler") as up,
        extending(tmp_path, up, keys) as url,
        scheduling(tmp_path, command(tmp_path, up, keys, url, option)) as log,
    ):
        client = anywhere._replace(kubeconfig=up.kubeconfig)
        client.said("apply -f -", workload("train", 10, cpu="10"))
        client.said("wait deployment/train --for=jsonpath={.status.readyReplicas}=8 --timeout=170s")
        client.said("create deployment plain --image=a --replicas=20")
        client.said("rollout status deployment/plain --timeout=170s")
        clusters.awaited(lambda: len(waiting(client)) == 2)
        reason = "get pod {} -o jsonpath={{.status.conditions[0].message}}"
        clusters.awaited(lambda: all(client.said(reason.format(name)) for name in waiting(client)))
        told = [client.said(reason.format(name)) for name in waiting(client)]
    assert told == [Like(NO_ZONE)] * 2
    assert complaints(log) == []


def priority_class(name: str, value: int) -> str:
    return json.dumps(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    )


def lone(name: str, priority: str, cpu: str) -> str:
    """A pod without a controller."""
    container = {"name": "main", "image": "a", "resources": {"limits": {"memory": "100Mi", "cpu": cpu}}}
    spec = {"priorityClassName": priority, "containers": [container], "terminationGracePeriodSeconds": 0}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


@pytest.mark.parametrize("minor", MINORS)
def test_kube_scheduler_evicts_the_victims_that_make_room_in_one_zone(
    tmp_path: Path, anywhere: Kubectl, keys: Keys, minor: str
) -> None:
    """Two zones with 16 CPUs, in each a pod of priority 1 and one of priority 5 with 7 CPUs. kube-scheduler alone would
    evict the two of priority 1, one of each zone, and the kubelet would reject the preemptor."""
    with (
        clusters.up(tmp_path, "--nodes 1 --machine 2x16 --no-blind-scheduler") as up,
        extending(tmp_path, up, keys) as url,
        scheduling(tmp_path, command(tmp_path, up, keys, url, "", minor)) as log,
    ):
        client = anywhere._replace(kubeconfig=up.kubeconfig)
        for name, value in (("low", 1), ("middle", 5), ("high", 10)):
            client.said("create -f -", priority_class(name, value))
        for name, priority in (("a", "low"), ("b", "middle"), ("c", "low"), ("d", "middle")):
            client.said("create -f -", lone(name, priority, "7"))
            client.said(f"wait pod/{name} --for=jsonpath={{.status.phase}}=Running --timeout=170s")
        client.said("create -f -", lone("preemptor", "high", "14"))
        client.said("wait pod/preemptor --for=jsonpath={.status.phase}=Running --timeout=170s")
        left = client.said("get pods -o jsonpath={.items[*].metadata.name}").split()
        assert sorted(left) in (["a", "b", "preemptor"], ["c", "d", "preemptor"])
    assert complaints(log) == []


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("preemption", ["numalign", "none"])
def test_pods_are_evicted_for_room_in_a_zone_if_numalign_is_to(
    tmp_path: Path, anywhere: Kubectl, keys: Keys, preemption: str, minor: str
) -> None:
    """Each of two zones with 16 CPUs has a pod of 10. By totals a third one fits; in no zone it does."""
    with (
        clusters.up(tmp_path, "--nodes 1 --machine 2x16 --no-blind-scheduler") as up,
        extending(tmp_path, up, keys, f"extender run --preemption {preemption} --pages-port 0 --port") as url,
        scheduling(tmp_path, command(tmp_path, up, keys, url, "", minor)) as log,
    ):
        client = anywhere._replace(kubeconfig=up.kubeconfig)
        for name, value in (("low", 1), ("high", 10)):
            client.said("create -f -", priority_class(name, value))
        for name in ("a", "b"):
            client.said("create -f -", lone(name, "low", "10"))
            client.said(f"wait pod/{name} --for=jsonpath={{.status.phase}}=Running --timeout=170s")
        client.said("create -f -", lone("preemptor", "high", "10"))
        if preemption == "numalign":
            client.said("wait pod/preemptor --for=jsonpath={.status.phase}=Running --timeout=170s")
            events = client.said("get events --field-selector=reason=Preempted -o name").split()
            left = client.said("get pods -o jsonpath={.items[*].metadata.name}").split()
            assert (len(events), len(left)) == (1, 2)
        else:
            client.said("wait pod/preemptor --for=jsonpath={.status.conditions[0].reason}=Unschedulable --timeout=170s")
            reason = client.said("get pod preemptor -o jsonpath={.status.conditions[0].message}")
            assert "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling." in reason
    assert complaints(log) == []


def test_one_process_schedules_its_own_pods_and_answers_for_those_of_kube_scheduler(
    tmp_path: Path, anywhere: Kubectl, keys: Keys
) -> None:
    """Both compete for the same eight zones, and every zone is used once."""
    with (
        clusters.up(tmp_path, "--nodes 4 --machine 2x16 --no-blind-scheduler") as up,
        extending(tmp_path, up, keys, BESIDE) as url,
        scheduling(tmp_path, command(tmp_path, up, keys, url, "")) as log,
    ):
        client = anywhere._replace(kubeconfig=up.kubeconfig)
        client.said("apply -f -", workload("train", 6, cpu="10"))
        client.said("apply -f -", workload("other", 6, "numalign", cpu="10"))
        client.said("wait pods -l app=train --for=create --timeout=170s")
        clusters.awaited(lambda: len(waiting(client)) + len(waiting(client, "other")) == 4)
        assert len(waiting(client)) < 6
        assert len(waiting(client, "other")) < 6
    assert complaints(log) == []


@pytest.mark.slow
@pytest.mark.parametrize("option", WAYS.values(), ids=WAYS)
def test_pods_wait_for_an_extender_that_is_killed_under_load_and_none_is_lost_or_rejected(
    tmp_path: Path, anywhere: Kubectl, keys: Keys, option: str
) -> None:
    port = controlplane.free_port()
    with clusters.up(tmp_path, "--nodes 20 --machine 2x16 --no-blind-scheduler") as up:
        client = anywhere._replace(kubeconfig=up.kubeconfig)
        process = started(tmp_path, up, keys, port)
        with scheduling(tmp_path, command(tmp_path, up, keys, f"https://127.0.0.1:{port}", option)):
            client.said("apply -f -", workload("train", 45, cpu="10"))
            for running in (4, 12, 20):
                clusters.awaited(partial(placed, client, running))
                process.kill()
                process.wait()
                process = started(tmp_path, up, keys, port)
            clusters.awaited(lambda: len(waiting(client)) == 5)
        process.kill()
        process.wait()


def placed(client: Kubectl, number: int) -> bool:
    return 45 - len(waiting(client)) >= number


def waiting(client: Kubectl, name: str = "train") -> list[str]:
    """The pods of a Deployment that wait; none has failed."""
    each = "{range.items[*]}{.metadata.name}={.status.phase}{.status.reason};{end}"
    phases = client.said(f"get pods -l app={name} -o jsonpath={each}")
    found = dict(each.split("=") for each in phases.split(";") if each)
    assert set(found.values()) <= {"Running", "Pending"}, found
    return [name for name, phase in found.items() if phase == "Pending"]


def refused_by_size(url: str, keys: Keys, size: int) -> int:
    """The status code after the head of a request of that size."""
    connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=60, context=keys.context())
    with contextlib.closing(connection):
        connection.putrequest("POST", "/filter")
        connection.putheader("Content-Length", str(size))
        connection.endheaders()
        return connection.getresponse().status


def asking(node: str, number: int) -> bytes:
    """A request with one node more than that, each as short as can be."""
    return b'{"Pod":{},"NodeNames":[' + f"{node},".encode() * number + f"{node}]}}".encode()


def offering(number: int) -> bytes:
    """A request for victims with so many candidates."""
    return json.dumps({"Pod": {}, "NodeNameToMetaVictims": dict.fromkeys(map(str, range(number)))}).encode()


def signed_elsewhere(folder: Path) -> tuple[Path, Path]:
    """Certificate and key of a client that another authority issued."""
    pair = certificates.authority("other", Validity.of(datetime.now(UTC))).issue_client("kube-scheduler")
    certificate, key = folder / "other.crt", folder / "other.key"
    certificate.write_text(pair.certificate)
    key.write_text(pair.key)
    return certificate, key


@contextlib.contextmanager
def slow(url: str, keys: Keys) -> Iterator[None]:
    """Clients that have sent a part of a request, more of them than the extender keeps connections for."""
    with contextlib.ExitStack() as stack:
        for number in range(extenderserver.LIMITS.connections + 8):
            connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=60, context=keys.context())
            stack.enter_context(contextlib.closing(connection))
            connection.putrequest("POST", "/filter")
            connection.putheader("Content-Length", "1000")
            connection.endheaders(b"{" if number % 2 else None)
        yield


def test_strangers_and_bad_requests_get_a_clear_status_and_the_extender_lives(tmp_path: Path, keys: Keys) -> None:
    with clusters.up(tmp_path, "--nodes 1") as up, extending(tmp_path, up, keys) as url:
        stranger = ssl.create_default_context(cafile=str(keys.authority))
        of_another = ssl.create_default_context(cafile=str(keys.authority))
        of_another.load_cert_chain(*signed_elsewhere(tmp_path))
        for context in (stranger, of_another):
            with pytest.raises(OSError):  # noqa: PT011  (what it reads depends on when the server hangs up)
                urllib.request.urlopen(f"{url}/filter", b"{}", timeout=60, context=context)
        codes = {
            "no JSON": answers(url, keys, b"{"),
            "no pod": answers(url, keys, b"{}"),
            "a list": answers(url, keys, b"[]"),
            "odd types": answers(url, keys, b'{"Pod":{"spec":{"containers":7}},"NodeNames":["a"]}'),
            "names that are none": answers(url, keys, b'{"Pod":{},"NodeNames":[7]}'),
            "too large": refused_by_size(url, keys, 100 << 20),
            "too many values": answers(url, keys, asking("{}", extenderserver.MOST_VALUES)),
            "too many nodes": answers(url, keys, asking('"a"', extenderserver.MOST_NODES)),
            "too many candidates": answers(url, keys, offering(extenderserver.MOST_NODES + 1), path="/preempt"),
            "unknown verb": answers(url, keys, path="/evict"),
            "nothing bound": answers(url, keys, b"{}", path="/bind"),
            "no preemptor": answers(url, keys, b'{"NodeNameToMetaVictims":{}}', path="/preempt"),
            "victims that are none": answers(
                url, keys, b'{"Pod":{},"NodeNameToMetaVictims":{"node":7}}', path="/preempt"
            ),
            "a number beyond Go's": answers(
                url, keys, b'{"Pod":{},"NodeNameToMetaVictims":{"node":{"NumPDBViolations":1e30}}}', path="/preempt"
            ),
            "deep nesting": answers(url, keys, b'{"Pod":' + b"[" * 100_000, path="/preempt"),
        }
        assert codes == {**dict.fromkeys(codes, 400), "too large": 413, "too many values": 413, "unknown verb": 404}
        unknown = b'{"Pod":{},"NodeNameToMetaVictims":{"nowhere":{"Pods":[{"UID":"x"}]}}}'
        assert answers(url, keys, unknown, path="/preempt") == 200
        assert answers(url, keys, b'{"Pod":{},"NodeNames":["nowhere"]}') == 200
        with slow(url, keys):
            assert answers(url, keys) == 200
