"""The commands of `numalign deploy` for hosts: `kubelet` prints or checks a KubeletConfiguration, `static-pod` puts
numalign in the place of kube-scheduler and back. Exit codes are those of the group."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, structs

from numalign.cli import output
from numalign.cli.commands.install.deploy import ERROR, ValueOptions, manifest, values_of
from numalign.cli.commands.install.deploycluster import FINDINGS, asked
from numalign.cli.options import Output, Scope, bundled
from numalign.cli.output import Format
from numalign.cli.sources import Context, Kubeconfig

if TYPE_CHECKING:
    from numalign.deploy.apply.server import Server
    from numalign.deploy.hosts.staticpod import Places
    from numalign.kubelet.machine.machine import Machine

app = typer.Typer()
static_pod = typer.Typer(no_args_is_help=True)

ADMIN = "/etc/kubernetes/admin.conf"


class AligningPolicy(StrEnum):
    """Topology Manager policies that align."""

    SINGLE = "single-numa-node"
    RESTRICTED = "restricted"
    BEST_EFFORT = "best-effort"


class Form(StrEnum):
    """Where the configuration goes."""

    CONFIG = "config"
    DROP_IN = "drop-in"
    KUBEADM_PATCH = "kubeadm-patch"


class Subject(Struct, frozen=True, kw_only=True):
    """The machine of the kubelet; without an option this host."""

    machine: Annotated[str, typer.Option(metavar="NAME|FILE", help="A preset, or a file that describes it.")] = ""
    node: Annotated[str, typer.Option(metavar="NAME", help="A node whose report describes it.")] = ""
    host_root: Annotated[Path, typer.Option(metavar="DIR", help="Where the host's root is mounted.")] = Path("/")
    kubelet_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The kubelet's minor. Default: the newest known.")
    ] = ""
    kubeconfig: Kubeconfig = ""
    context: Context = ""


class Reservations(Struct, frozen=True, kw_only=True):
    """What the node should do, and what it keeps for itself."""

    policy: Annotated[AligningPolicy, typer.Option(help="Topology Manager policy.")] = AligningPolicy.SINGLE
    scope: Annotated[Scope, typer.Option(help="Topology Manager scope.")] = Scope.CONTAINER
    reserved_cpus: Annotated[
        str, typer.Option(metavar="LIST", help="CPUs for the system. Default: the first core of every zone.")
    ] = ""
    kube_reserved: Annotated[str, typer.Option(metavar="SIZE", help="Memory for Kubernetes' programs.")] = "1Gi"
    system_reserved: Annotated[str, typer.Option(metavar="SIZE", help="Memory for the system.")] = "1Gi"
    eviction: Annotated[str, typer.Option(metavar="SIZE", help="Free memory at which pods are evicted.")] = "100Mi"
    cpu_option: Annotated[list[str], typer.Option(metavar="NAME=VALUE", help="A CPU Manager policy option.")] = []
    topology_option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="A Topology Manager policy option.")
    ] = []


@app.command(epilog="Example: numalign deploy kubelet --machine epyc-nps4 --form drop-in")
@bundled
def kubelet(
    subject: Subject,
    wanted: Reservations,
    base: Annotated[
        str, typer.Option(metavar="FILE", help="Amend this configuration; its reservations are kept.")
    ] = "",
    check: Annotated[str, typer.Option(metavar="FILE", help="Only judge this configuration.")] = "",
    form: Annotated[Form, typer.Option(help="A whole file, a drop-in, or a patch for kubeadm.")] = Form.CONFIG,
    kubelet_dir: Annotated[str, typer.Option(metavar="DIR", help="The kubelet's folder.")] = "/var/lib/kubelet",
    fmt: Output = Format.TABLE,
) -> None:
    """Print the KubeletConfiguration that aligns pods on a machine, and the steps to put it into force; or check one.

    The amounts of reservedMemory are computed. A kubelet starts with every configuration that is printed.

    Exit code: 0, 1 after an error, 2 if the checked configuration has findings."""
    from numalign.cli import inputs

    minor = inputs.minor(subject.kubelet_version or None)
    machine = _machine(subject)
    if check:
        return _check(check, machine, minor, fmt)
    _propose(machine, minor, wanted, base, form, subject.node or "NODE", kubelet_dir, fmt)


def _machine(subject: Subject) -> Machine:
    from numalign.agent.sources import sysfs
    from numalign.cli import inputs

    if subject.machine and subject.node:
        output.fail("--machine and --node are exclusive; give one", ERROR)
    if subject.machine:
        return inputs.machine(subject.machine)
    if subject.node:
        return _reported(subject)
    found = sysfs.survey(subject.host_root, "this host")
    for problem in found.problems:
        output.warn(problem)
    return found.machine


def _reported(subject: Subject) -> Machine:
    from numalign.api.nrt import normalise
    from numalign.deploy.hosts import kubeletfile
    from numalign.kube.resources import TOPOLOGIES

    async def read(server: Server) -> Any:
        return await server.client.get(TOPOLOGIES.at(subject.node))

    return kubeletfile.machine_of(normalise.normalise(asked(subject.kubeconfig, subject.context, read)))


def _check(file: str, machine: Machine, minor: Any, fmt: Format) -> None:
    from numalign.cli import fileio
    from numalign.deploy.hosts import kubeletfile

    document = fileio.only(file)
    found = kubeletfile.judged(document.value, document.place, machine, minor)
    if fmt is not Format.TABLE:
        output.show(output.structured({"success": not found, "findings": found}, fmt))
    else:
        lines = [f"{each.severity} {each.id}: {each.seen}; {each.remedy}" for each in found]
        output.show("\n".join(lines) or f"{document.place}: nothing keeps pods from being aligned on this machine")
    if found:
        raise typer.Exit(FINDINGS)


def _propose(
    machine: Machine, minor: Any, wanted: Reservations, base: str, form: Form, node: str, folder: str, fmt: Format
) -> None:
    from numalign.api.decode import fields
    from numalign.cli import fileio
    from numalign.deploy.hosts import kubeletfile
    from numalign.kubelet import configuration

    wish = kubeletfile.Wish(
        policy=wanted.policy.value,
        scope=wanted.scope.value,
        reserved_cpus=wanted.reserved_cpus,
        kube_reserved=wanted.kube_reserved,
        system_reserved=wanted.system_reserved,
        eviction=wanted.eviction,
        cpu_options=_pairs("--cpu-option", wanted.cpu_option),
        topology_options=_pairs("--topology-option", wanted.topology_option),
    )
    given = None
    if base:
        document = fileio.only(base)
        given = fields.named(fields.root(document.value, configuration.KIND, document.place))
    config = kubeletfile.proposed(machine, wish, minor, given)
    for finding in kubeletfile.crowded(wish.policy, machine):
        output.warn(f"{finding.seen}; {finding.remedy}")
    steps = kubeletfile.steps(form.value, node, folder)
    if fmt is not Format.TABLE:
        output.show(output.structured({"form": form.value, "configuration": config, "steps": steps}, fmt))
        return
    numbered = [f"# {number}. {step}" for number, step in enumerate(steps, 1)]
    head = ["# A change of policy needs an empty node, and the kubelet's checkpoints have to go:", *numbered]
    output.show("\n".join([*head, output.structured(config, Format.YAML)]))


def _pairs(option: str, given: list[str]) -> dict[str, str]:
    for each in given:
        if not each.partition("=")[1]:
            output.fail(f"{option} {each} is not a name, an = and a value", ERROR)
    return {name: value for name, _, value in (each.partition("=") for each in given)}


class Host(Struct, frozen=True, kw_only=True):
    """Folders of this control-plane host."""

    manifests: Annotated[str, typer.Option(metavar="DIR", help="The folder of static pods.")] = (
        "/etc/kubernetes/manifests"
    )
    folder: Annotated[
        str, typer.Option(metavar="DIR", help="For the configuration and the backup; not below the first.")
    ] = "/etc/kubernetes/numalign"
    host_root: Annotated[Path, typer.Option(metavar="DIR", help="Where the host's root is mounted.")] = Path("/")

    @property
    def places(self) -> Places:
        from numalign.deploy.hosts.staticpod import Places

        return Places(self.manifests, self.folder, self.host_root)


@static_pod.callback()
def _static_pod() -> None:
    """Replace kube-scheduler by numalign on this control-plane host, or put it back."""


@static_pod.command(epilog="Example: numalign deploy static-pod install -f values.yaml")
@bundled
def install(
    given: ValueOptions,
    host: Host,
    replace_backup: Annotated[
        bool, typer.Option("--replace-backup", help="kubeadm wrote a new manifest: back that one up instead.")
    ] = False,
    skip_rights: Annotated[
        bool, typer.Option("--skip-rights", help="Do not grant the user system:kube-scheduler anything.")
    ] = False,
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help=f"An administrator's kubeconfig. Default: {ADMIN}, if it exists.")
    ] = "",
    context: Context = "",
    fmt: Output = Format.TABLE,
) -> None:
    """Put numalign in the place of kube-scheduler's static pod, for all pods of the cluster.

    Keeps the manifest, takes the Lease of kube-scheduler, and grants its user the rights that numalign needs beyond
    those it has. Run it on every control-plane host; until then at most one of the schedulers leads.

    Exit code: 0, 1 after an error."""
    from numalign.deploy.hosts import staticpod
    from numalign.deploy.objects.common import Context as Rendering
    from numalign.deploy.release import Release
    from numalign.deploy.schedulerfile import document
    from numalign.deploy.values import SOME_LEASE

    values = values_of(given)
    scheduler = structs.replace(values.scheduler, mode="only")
    image = Rendering(values, Release()).image(scheduler.image)
    config = output.structured(document(scheduler, SOME_LEASE), Format.YAML) + "\n"
    if not skip_rights:
        _grant(kubeconfig or _administrator(host.host_root), context)
    done = staticpod.install(host.places, image, config.encode(), replace_backup=replace_backup)
    for flag in done.left_out:
        output.warn(f"{staticpod.POD} was started with {flag}, which numalign does not read; say it in the values")
    words = "every control-plane host needs this; `numalign deploy detect` counts them"
    if fmt is not Format.TABLE:
        said = {"action": done.action, "files": done.files, "leftOut": done.left_out, "note": words}
        return output.show(output.structured(said, fmt))
    output.show("\n".join([done.action, *done.files, words]))


@static_pod.command(epilog="Example: numalign deploy static-pod restore")
@bundled
def restore(
    host: Host,
    force: Annotated[bool, typer.Option("--force", help="Also if our manifest was edited.")] = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Put kube-scheduler's manifest back, exactly as it was. The granted rights stay; they are listed by `rights`.

    Exit code: 0, 1 after an error."""
    from numalign.deploy.hosts import staticpod

    done = staticpod.restore(host.places, force=force)
    if fmt is not Format.TABLE:
        return output.show(output.structured({"action": done.action, "files": done.files}, fmt))
    output.show("\n".join([done.action, *done.files]))


@static_pod.command(epilog="Example: numalign deploy static-pod status -o json")
@bundled
def status(host: Host, fmt: Output = Format.TABLE) -> None:
    """Say which scheduler this host runs.

    Exit code: 0, 2 if something was changed or is incomplete, 1 after an error."""
    from numalign.deploy.hosts import staticpod

    found = staticpod.status(host.places)
    if fmt is not Format.TABLE:
        output.show(output.structured(found, fmt))
    else:
        output.show(found.words + (f": {found.image}" if found.image else ""))
    if found.standing not in ("stock", "numalign"):
        raise typer.Exit(FINDINGS)


@static_pod.command(epilog="Example: numalign deploy static-pod rights | kubectl apply --server-side -f -")
def rights(fmt: Output = Format.YAML) -> None:
    """Print the roles that let the user of kube-scheduler do what numalign does."""
    from numalign.deploy.hosts import staticpod

    output.show(manifest(staticpod.rights_of_user(), Format.YAML if fmt is Format.TABLE else fmt))


def _administrator(root: Path) -> str:
    place = root / ADMIN.lstrip("/")
    return str(place) if place.exists() else ""


def _grant(kubeconfig: str, context: str) -> None:
    """The rights, and the definition of reports where it is missing."""
    from numalign.deploy.hosts import staticpod

    async def grant(server: Server) -> None:
        await server.learn(each["apiVersion"] for each in staticpod.rights_of_user())
        for tree in staticpod.rights_of_user():
            await server.apply(tree, force=True)

    asked(kubeconfig, context, grant)
