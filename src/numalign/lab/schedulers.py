"""The programs beside the API server: controller manager and schedulers, each with its own name and account.

`up` starts those that a lab asks for: `default-scheduler` is kube-scheduler, alone or with numalign's extender, or
numalign's scheduler; `reference` is the scheduler with NodeResourceTopologyMatch, `numalign` ours."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.api.schedulerconfig import configuration as schedulerconfig
from numalign.api.schedulerconfig import pluginargs
from numalign.lab import accounts, controlplane
from numalign.lab.containers import network
from numalign.lab.controlplane import ServerPlan
from numalign.lab.processes import ProgramSpec
from numalign.lab.spec import LabSpec
from numalign.process import certificates, interpreter
from numalign.process.certificates import Validity
from numalign.scheduler import profiles
from numalign.scheduler.extender import stanza
from numalign.scheduler.extender.stanza import ExtenderOptions

REFERENCE, REFERENCE_PROGRAM = "reference", "reference-scheduler"
SCHEDULER, EXTENDER = "scheduler", "extender"
EXTENDER_CLIENT, EXTENDER_AUTHORITY = "extender-client", "extender-ca"
PROXY: Final = "kube-proxy"
PROXY_NODE: Final = "--hostname-override="
ZONES_PLUGIN: Final = "NodeResourceTopologyMatch"
KIND: Final = {"apiVersion": pluginargs.API_VERSION, "kind": schedulerconfig.KIND}
RESYNC: Final = 1
"""Seconds between two resyncs of the reference scheduler."""


def binaries(lab: LabSpec) -> list[str]:
    asked = {
        "kube-controller-manager": lab.controllers,
        "kube-scheduler": lab.runs_stock_scheduler,
        REFERENCE_PROGRAM: lab.reference_scheduler,
        PROXY: lab.runs_containers,
    }
    return [name for name, wanted in asked.items() if wanted]


def programs(lab: LabSpec, plan: ServerPlan, found: dict[str, Path], kubeconfigs: dict[str, Path]) -> list[ProgramSpec]:
    """`kubeconfigs` are by account."""

    def program(name: str, *command: str, port: int = 0) -> ProgramSpec:
        # Ours stays on the real machine, whose users open its pages.
        where = "" if port else plan.network
        return ProgramSpec(name=name, command=command, log=plan.folder / f"{name}.log", port=port, network=where)

    made = []
    if lab.controllers:
        account = kubeconfigs["system:kube-controller-manager"]
        name = "kube-controller-manager"
        made.append(program(name, str(found[name]), *_controller_flags(plan, account)))
    if lab.runs_containers:
        flags = _proxy_flags(kubeconfigs["system:kube-proxy"])
        made.append(proxy_of(lab.nodes[0].name, program(PROXY, str(found[PROXY]), *flags)))
    if lab.runs_stock_scheduler:
        config = _config(plan.folder, kubeconfigs["system:kube-scheduler"], {"schedulerName": DEFAULT_SCHEDULER})
        if lab.extender:
            port = controlplane.free_port()
            _certify_extender(plan)
            _ask(config, plan, f"https://{controlplane.HOST}:{port}")
            made.append(program(EXTENDER, *_extender_command(plan, kubeconfigs[accounts.SCHEDULER], port)))
        made.append(program("kube-scheduler", str(found["kube-scheduler"]), *_go_flags(config)))
    if lab.reference_scheduler:
        config = _config(plan.folder, kubeconfigs[accounts.ADMIN], _reference_profile())
        made.append(program(REFERENCE_PROGRAM, str(found[REFERENCE_PROGRAM]), *_go_flags(config)))
    if lab.runs_scheduler:
        port = controlplane.free_port()
        file = plan.folder / "scheduler.json"
        file.write_bytes(msgspec.json.encode(configuration(lab)))
        login = ("--kubeconfig", str(kubeconfigs[accounts.SCHEDULER]))
        command = (*interpreter.NUMALIGN, "scheduler", "run", "--config", str(file), *login, "--port", str(port))
        made.append(program(SCHEDULER, *command, port=port))
    return made


def configuration(lab: LabSpec) -> dict[str, Any]:
    """Of numalign's scheduler."""
    names = (*((DEFAULT_SCHEDULER,) if lab.only_scheduler else ()), profiles.NAME)
    return {**KIND, "profiles": [{"schedulerName": name} for name in names]}


def _certify_extender(plan: ServerPlan) -> None:
    """Certificates by which kube-scheduler and the extender know each other. The key of their authority is written
    nowhere."""
    issuer = certificates.authority("numalign lab extender CA", Validity.of(datetime.now(UTC)))
    plan.certificate(EXTENDER_AUTHORITY).write_text(issuer.certificate())
    controlplane.keep(plan, EXTENDER, issuer.issue(EXTENDER, [controlplane.HOST]))
    controlplane.keep(plan, EXTENDER_CLIENT, issuer.issue_client("kube-scheduler"))


def _extender_command(plan: ServerPlan, kubeconfig: Path, port: int) -> list[str]:
    files = {
        "--kubeconfig": kubeconfig,
        "--client-ca": plan.certificate(EXTENDER_AUTHORITY),
        "--tls-certificate": plan.certificate(EXTENDER),
        "--tls-key": plan.private(EXTENDER),
    }
    options = [word for option, file in files.items() for word in (option, str(file))]
    return [*interpreter.NUMALIGN, EXTENDER, "run", "--port", str(port), "--pages-port", "0", *options]


def _ask(config: Path, plan: ServerPlan, url: str) -> None:
    """Let the scheduler of this configuration ask the extender at this URL."""
    options = ExtenderOptions(
        url=url,
        authority=str(plan.certificate(EXTENDER_AUTHORITY)),
        certificate=str(plan.certificate(EXTENDER_CLIENT)),
        key=str(plan.private(EXTENDER_CLIENT)),
    )
    made = stanza.merged(msgspec.json.decode(config.read_bytes()), str(config), options)
    config.write_bytes(msgspec.json.encode(made))


def _controller_flags(plan: ServerPlan, kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        # Each controller has the rights of its own account.
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={plan.key}",
        f"--root-ca-file={plan.authority}",
    ]


def _proxy_flags(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        "--proxy-mode=nftables",
        f"--nodeport-addresses={network.OUTSIDE}",
        f"--cluster-cidr={network.PODS}",
        # Answers have to come back here, also between pods of one node.
        "--masquerade-all",
        # It answers everyone, so it must not listen where pods and the real machine's users can connect.
        "--healthz-bind-address=127.0.0.1:10256",
        "--metrics-bind-address=127.0.0.1:10249",
        # These settings are of the whole machine.
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]


def proxy_of(node: str, proxy: ProgramSpec) -> ProgramSpec:
    """It serves all nodes, in the network that connects them; but it waits for a Node of its own, and ends with it."""
    flags = (word for word in proxy.command if not word.startswith(PROXY_NODE))
    return structs.replace(proxy, command=(*flags, f"{PROXY_NODE}{node}"))


def _go_flags(config: Path) -> list[str]:
    return [f"--config={config}", "--secure-port=0"]


def _reference_profile() -> dict[str, Any]:
    args = {
        "cacheResyncPeriodSeconds": RESYNC,
        # With its dedicated informer it would expect ended pods in a report, which kubelets omit.
        "cache": {"informerMode": "Shared"},
        "scoringStrategy": {"type": "LeastAllocated"},
    }
    return {
        "schedulerName": REFERENCE,
        "plugins": {"multiPoint": {"enabled": [{"name": ZONES_PLUGIN}]}},
        "pluginConfig": [{"name": ZONES_PLUGIN, "args": args}],
    }


def _config(folder: Path, kubeconfig: Path, profile: dict[str, Any]) -> Path:
    config = {
        **KIND,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    file = folder / f"{profile['schedulerName']}.json"
    file.write_bytes(msgspec.json.encode(config))
    return file
