"""`numalign lab`: builds the real components, runs clusters of real kubelets, and runs campaigns on them.

A lab runs in a background process, which is the parent of all its programs. The commands import what they call when
they run, so that help stays fast."""

from __future__ import annotations

import enum
import logging
import os
import re
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from numalign.cli import fileio, output
from numalign.cli.devkit import labreplay
from numalign.cli.options import Output, Policy, Scope
from numalign.lab import build
from numalign.lab.build import Binary
from numalign.lab.errors import LabError

if TYPE_CHECKING:
    from numalign.lab.campaign.directrun import DirectCampaignReport
    from numalign.lab.campaign.report import CampaignReport
    from numalign.lab.e2e.report import E2EReport, SuiteRun
    from numalign.lab.e2e.run import E2EOptions
    from numalign.lab.state import LabState, NodeState, ProgramState


T = TypeVar("T")
USUAL = "numalign"


class Runtime(enum.Enum):
    FAKE = "fake"
    CONTAINERD = "containerd"


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the lab.")]
NameArgument = Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the lab.")]


def up(
    name: NameArgument = USUAL,
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="Number of nodes.")] = 3,
    machine: Annotated[
        str,
        typer.Option(metavar="NAME|FILE", help="Name of a preset, a machine file, or host for this machine itself."),
    ] = "2x16",
    runtime: Annotated[
        Runtime, typer.Option(help="Container runtime: fake runs nothing, containerd runs containers.")
    ] = Runtime.FAKE,
    policy: Annotated[
        Policy | None, typer.Option(help="Topology Manager policy. Default: the file's, or single-numa-node.")
    ] = None,
    scope: Annotated[
        Scope | None, typer.Option(help="Topology Manager scope. Default: the file's, or container.")
    ] = None,
    kubelet_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A KubeletConfiguration. Default: static CPU and memory managers."),
    ] = None,
    devices: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the devices of the device plugins. Default: the machine's."),
    ] = None,
    controllers: Annotated[bool, typer.Option(help="Run kube-controller-manager.")] = True,
    with_scheduler: Annotated[bool, typer.Option("--with-scheduler", help="Run the numalign scheduler.")] = False,
    stock_scheduler: Annotated[bool, typer.Option("--stock-scheduler", help="Run kube-scheduler.")] = False,
    reference_scheduler: Annotated[
        bool,
        typer.Option("--reference-scheduler", help="Run a scheduler with NodeResourceTopologyMatch, named reference."),
    ] = False,
    only_scheduler: Annotated[
        bool,
        typer.Option("--only-scheduler", help="Run the numalign scheduler as default-scheduler, too."),
    ] = False,
    extender: Annotated[
        bool, typer.Option("--extender", help="Run kube-scheduler with the numalign extender.")
    ] = False,
    agent: Annotated[bool, typer.Option("--agent", help="Run the numalign agent on every node.")] = False,
    direct_mode: Annotated[
        bool,
        typer.Option("--direct-mode", help="Run agents that enforce decisions, on kubelets without managers."),
    ] = False,
    nfd: Annotated[bool, typer.Option("--nfd", help="Run nfd-topology-updater on every node.")] = False,
    foreground: Annotated[bool, typer.Option("--foreground", help="Run in the foreground until interrupted.")] = False,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Start real kubelets on simulated machines, and print the KUBECONFIG of the cluster.

    Exit code: 0 once all nodes are Ready, 1 if the lab fails to start, 2 if options or machine do not allow it."""
    from numalign.cli.devkit import labs
    from numalign.lab.errors import LabError
    from numalign.lab.spec import LabSpec

    try:
        asked = labs.NodeOptions(nodes, machine, policy or "", scope or "", kubelet_config, devices, direct_mode)
        wanted = LabSpec(
            name=name,
            nodes=labs.nodes_of(asked),
            runtime=runtime.value,
            controllers=controllers,
            scheduler=with_scheduler,
            agent=agent or direct_mode,
            nfd=nfd,
            stock_scheduler=stock_scheduler,
            reference_scheduler=reference_scheduler,
            only_scheduler=only_scheduler,
            extender=extender,
        )
        labs.require(wanted)
    except LabError as problem:
        output.fail(str(problem))
    try:
        if foreground:
            return labs.stay(wanted)
        found = labs.started(name)
    except LabError as problem:
        output.fail(str(problem), code=1)
    output.show(output.structured(found, fmt) if fmt is not output.Format.TABLE else _lines(found))


def down(name: NameArgument = USUAL) -> None:
    """End a lab, or remove what is left of one."""
    from numalign.lab import preflight, state

    ended, cleared = state.INSTANCES.end(name), state.clear(name)
    if not (ended or cleared):
        output.fail(f"lab {name} is not running; `numalign lab status` lists the running labs", code=1)
    if not state.INSTANCES.every():
        preflight.release()
    output.show(f"{name} is down")


def status(fmt: Output = output.Format.TABLE) -> None:
    """List the labs on this machine, with their programs."""
    from numalign.lab import state

    found = state.INSTANCES.every()
    if fmt is not output.Format.TABLE:
        return output.show(output.structured(found, fmt))
    result = [f"{_lines(each)}\n{_pieces(each)}" for each in found]
    stale = sorted(set(state.INSTANCES.names()) - {each.name for each in found})
    result += [f"{name}: ended or starting; `numalign lab down {name}` removes it" for name in stale]
    output.show("\n\n".join(result) or "no lab is running; `numalign lab up` starts one")


def logs(
    part: Annotated[
        str, typer.Argument(metavar="[PART]", help="The program, such as kube-apiserver or node-0/kubelet.")
    ] = "",
    name: Name = USUAL,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the log.")] = False,
) -> None:
    """Print the log of a program, also of a lab that failed to start; without PART, list the logs."""
    from numalign.cli import fileio
    from numalign.lab import state

    found = state.logs(name)
    if not found:
        output.fail(f"lab {name} is not running; `numalign lab up` starts one", code=1)
    if not part:
        return output.show("\n".join(f"{title:<28} {log}" for title, log in found.items()))
    if part not in found:
        output.fail(f"lab {name} has no program {part}; it has {', '.join(found)}")
    fileio.show(found[part], follow=follow, while_there=state.INSTANCES.folder(name))


def shell(
    node: Annotated[str, typer.Argument(metavar="[NODE]", help="The node. Default: the first one.")] = "",
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="The command to run instead of a shell.")
    ] = None,
    name: Name = USUAL,
) -> None:
    """Run a shell or a command with the kubelet's view of a node: its /sys, /proc and /var/lib/kubelet."""
    import shutil
    import subprocess

    from numalign.lab import launching

    lab = _lab(name)
    chosen = next((each for each in lab.nodes if each.name == (node or lab.nodes[0].name)), None)
    if chosen is None:
        output.fail(f"lab {name} has no node {node}; it has {', '.join(each.name for each in lab.nodes)}")
    _enter(lab, chosen)
    words = command or [os.environ.get("SHELL", "/bin/sh")]
    program = shutil.which(words[0])
    if program is None:
        output.fail(f"command {words[0]} not found", code=127)
    home = lab.home(chosen.name)
    if home is not None:
        inside = launching.command([program, *words[1:]], (), home=home, cgroups=chosen.cgroups)
        with launching.processes_of(home):
            raise typer.Exit(subprocess.call(inside))
    argv = launching.command([program, *words[1:]], chosen.mounts)
    os.execv(argv[0], argv)


def load(
    archive: Annotated[Path, typer.Argument(metavar="IMAGE.tar", help="An OCI archive of an image.")],
    image: Annotated[
        str,
        typer.Option(
            "--image", metavar="IMAGE", help="Full name of the image, where the archive has none or another is wanted."
        ),
    ] = "",
    name: Name = USUAL,
) -> None:
    """Load an image into every node of a lab whose runtime is containerd.

    Exit code: 0 once every node has it, 1 if the lab does not run or refuses it, 2 if the archive is not one."""
    from numalign.lab import build
    from numalign.lab.containers import images

    lab = _lab(name)
    wanted = images.wanted_name(archive, image)
    homes = {each.name: lab.home(each.name) for each in lab.nodes}
    nodes = [images.NodeRuntime(each.name, homes[each.name] or 0, each.cgroups) for each in lab.nodes]
    if None in homes.values():
        output.fail(f"lab {name} runs no containers; `numalign lab up --runtime containerd` starts one", code=1)
    try:
        (ctr,) = build.build(build.chosen(["ctr"]), lambda _: None)
        images.load(archive, wanted, nodes, ctr.path)
    except LabError as problem:
        output.fail(str(problem), code=1)
    output.show(f"{wanted} is on {len(nodes)} node{'s' if len(nodes) != 1 else ''}")


def _enter(lab: LabState, node: NodeState) -> None:
    path = f"{lab.tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    # kubectl caches the discovery by server address, which is useless once the lab is down.
    cache = str(Path(lab.kubeconfig).with_name("kubectl-cache"))
    os.environ.update(KUBECONFIG=lab.kubeconfig, KUBECACHEDIR=cache, NODE_NAME=node.name, PATH=path)


def _lab(name: str) -> LabState:
    from numalign.lab import state

    found = state.INSTANCES.running(name) or state.INSTANCES.last_announced(name)
    if found is None:
        output.fail(f"lab {name} is not running; `numalign lab up` starts one", code=1)
    return found


def _lines(found: LabState) -> str:
    return f"{found.name}: {found.words}, at {found.url}\nexport KUBECONFIG={found.kubeconfig}"


def _pieces(found: LabState) -> str:
    return "\n".join(f"  {each.title:<28} {_condition(each)}" for each in found.pieces)


def _condition(piece: ProgramState) -> str:
    restarts = f", started {piece.starts} times" if piece.starts > 1 else ""
    return f"running, pid {piece.pid}{restarts}" if piece.runs else f"not running{restarts}"


INTERRUPTED = 130


def campaign(
    minutes: Annotated[float, typer.Option(metavar="N", min=0.1, max=1440, help="Duration of load and faults.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all pods and faults.")] = 1,
    name: Name = "campaign",
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the history to this file, one JSON line per event.")
    ] = None,
    logs: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the logs of the lab in this folder.")] = None,
    direct_mode: Annotated[
        bool, typer.Option("--direct-mode", help="On nodes in direct mode, with real containers.")
    ] = False,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Run random pods and faults on real kubelets for some minutes, and report every broken promise.

    Exit code: 0 if no pod was rejected, mispredicted or lost, no report was late, and at most 1% of the placed pods
    were unforeseeable or overtaken, each with evidence; in direct mode, if no CPU was two containers' own, and no pod
    was stuck or lost. 1 if not, or if the lab failed; 2 if the options or this machine do not allow it; 130 if it was
    interrupted without a finding."""
    from numalign.cli.devkit import labs
    from numalign.lab.campaign import directrun, history, report, run
    from numalign.lab.errors import LabError

    asked = run.CampaignOptions(minutes=minutes, seed=seed, name=name, logs=logs)
    try:
        labs.require(directrun.lab(asked) if direct_mode else run.lab(asked))
    except LabError as problem:
        output.fail(str(problem))
    fileio.require_file(record)
    fileio.require_folder(logs)
    found: CampaignReport | DirectCampaignReport
    try:
        if direct_mode:
            found, lines = _played(directrun.run(asked, _say))
            words, interrupted = directrun.text(found), found.interrupted
        else:
            found, lines = _played(run.run(asked, _say))
            words, interrupted = report.text(found), found.run.interrupted
    except LabError as problem:
        output.fail(str(problem), code=1)
    output.show(words if fmt is output.Format.TABLE else output.structured(found, fmt))
    fileio.write(record, history.encode(lines))
    raise typer.Exit(1 if not found.good else INTERRUPTED if interrupted else 0)


def _played(campaign: Coroutine[Any, Any, T]) -> T:
    from numalign.kube import clock

    # An unavailable server is part of the campaign.
    logging.getLogger("numalign.kube").setLevel(logging.ERROR)
    with clock.event_loop_runner() as runner:
        return runner.run(campaign)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class TestedScheduler(enum.Enum):
    BOTH = "both"
    STOCK = "stock"
    NUMALIGN = "numalign"


def e2e(
    scheduler: Annotated[
        TestedScheduler, typer.Option(help="The scheduler to test: kube-scheduler (stock), numalign, or both.")
    ] = TestedScheduler.BOTH,
    focus: Annotated[
        str, typer.Option(metavar="REGEX", help="Tests to run, by name. Default: all of [sig-scheduling].")
    ] = "",
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare the outcomes with the table in this Markdown file.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the outcomes into the table instead.")] = False,
    name: Name = "e2e",
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the output of the tests in this folder.")
    ] = None,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Run Kubernetes' own end-to-end tests of scheduling with kube-scheduler and with numalign as the only scheduler.

    Exit code: 0 if numalign passes all tests that kube-scheduler passes, or the page explains the others and is true;
    1 if not, or if the lab failed; 2 if the options or this machine do not allow it; 130 if it was interrupted."""
    from numalign.cli.devkit import labs
    from numalign.lab.e2e import report, run, suite

    tested = report.SCHEDULERS if scheduler is TestedScheduler.BOTH else (scheduler.value,)
    asked = run.E2EOptions(name=name, schedulers=tested, focus=focus or suite.FOCUS, logs=logs)
    try:
        _check_page(page, write=write, focus=focus)
        labs.require(run.lab(asked, tested[0]))
    except LabError as problem:
        output.fail(str(problem))
    fileio.require_folder(logs)
    try:
        found = report.of(build.KUBERNETES, _tested(asked))
    except LabError as problem:
        output.fail(str(problem), code=1)
    if page is not None:
        found = _compared(found, page, write=write)
    output.show(report.text(found) if fmt is output.Format.TABLE else output.structured(found, fmt))
    raise typer.Exit(1 if found.differences or (page is None and found.worse) else 0)


def _check_page(page: Path | None, *, write: bool, focus: str) -> None:
    """LabError or BadObject before a lab starts."""
    from numalign.lab.e2e import report

    if write and page is None:
        raise LabError("--write needs the file with the table; give --page FILE")
    if focus and page is not None:
        raise LabError("the table lists all tests; give either --focus or --page")
    try:
        re.compile(focus)
    except re.error as problem:
        raise LabError(f"--focus {focus!r} is not a regular expression: {problem}") from None
    if page is not None:
        report.rows(_text(page), str(page))


def _text(page: Path) -> str:
    try:
        return page.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise LabError(f"{page} cannot be read: {problem}") from None


def _compared(found: E2EReport, page: Path, *, write: bool) -> E2EReport:
    """With what the page says otherwise; with `write`, after the outcomes have been written into it."""
    from msgspec import structs

    from numalign.lab.e2e import report

    text = _text(page)
    if write:
        text = report.updated(found, text, str(page))
        fileio.write(page, text.encode())
    return structs.replace(found, differences=report.differences(found, text, str(page)))


def _tested(asked: E2EOptions) -> Sequence[SuiteRun]:
    import asyncio

    from numalign.kube import clock
    from numalign.lab.e2e import run

    try:
        with clock.event_loop_runner() as runner:
            return runner.run(run.run(asked, _say))
    except asyncio.CancelledError:
        raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(help="Real Kubernetes components for tests and comparisons.", no_args_is_help=True)

app.command("up", epilog="Example: numalign lab up --nodes 3 --machine 2x16 --stock-scheduler")(up)
app.command("down", epilog="Example: numalign lab down")(down)
app.command("status", epilog="Example: numalign lab status")(status)
app.command("logs", epilog="Example: numalign lab logs node-0/kubelet -f")(logs)
app.command(
    "shell",
    epilog="Example: numalign lab shell node-0 lscpu",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(shell)
app.command("load", epilog="Example: numalign lab load numalign-agent.tar --image localhost/numalign:dev")(load)
app.command("campaign", epilog="Example: numalign lab campaign --minutes 5 --seed 1")(campaign)
app.command("e2e", epilog="Example: numalign lab e2e --scheduler numalign --focus SchedulerPredicates")(e2e)
app.command("replay", epilog=labreplay.EXAMPLE)(labreplay.replay)


@app.callback()
def lab() -> None:
    """Real Kubernetes components for tests and comparisons."""


@app.command("build", epilog="Example: numalign lab build oracle-kubelet-1.37")
def build_binaries(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Binaries to build. Default: all but e2e.test.")
    ] = None,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Build missing binaries into the cache, and print where all are."""
    try:
        wanted = build.chosen(names or [])
        progress = BuildProgress(wanted)
        built = list(build.build(wanted, progress.announce))
    except LabError as problem:
        output.fail(str(problem))
    if fmt is not output.Format.TABLE:
        print(output.structured({each.binary.name: str(each.path) for each in built}, fmt))
        return
    for each in built:
        print(f"{each.binary.name:<24} {'built' if each.fresh else 'ready':<6} {each.path}")


class BuildProgress:
    """Prints on stderr what is being built and the estimated time left on two cores."""

    def __init__(self, wanted: tuple[Binary, ...]) -> None:
        self.left = list(wanted)
        self.started = time.monotonic()

    def announce(self, binary: Binary) -> None:
        self.left = self.left[self.left.index(binary) :]
        minutes = sum(each.minutes for each in self.left)
        elapsed = (time.monotonic() - self.started) / 60
        print(
            f"building {binary.name}; {elapsed:.0f} min so far, up to {minutes:.0f} min left if nothing is cached",
            file=sys.stderr,
            flush=True,
        )
