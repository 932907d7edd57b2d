"""The commands of `numalign deploy` that talk to a cluster: diff, apply, remove, status, wait, detect; and images.

Exit code 0 if all is well, 1 for wrong usage and technical errors, 2 for findings (differences, something not ready), 3
if something was not ready in time. `deploy` has the options for values and turns errors into these codes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from msgspec import Struct, structs

from numalign.api.errors import BadObject, echo
from numalign.cli import output, sources
from numalign.cli.commands.install.deploy import (
    ERROR,
    ReleaseOptions,
    ValueOptions,
    release_of,
    require_names,
    values_of,
)
from numalign.cli.options import Output, bundled
from numalign.cli.output import Format
from numalign.cli.sources import Context, Kubeconfig

if TYPE_CHECKING:
    from numalign.deploy.apply.applying import ApplyPlan, Change
    from numalign.deploy.apply.inventory import Installation
    from numalign.deploy.apply.server import Server
    from numalign.deploy.values import Values

FINDINGS = 2
TIMEOUT = 3

app = typer.Typer()
T = TypeVar("T")

Timeout = Annotated[str, typer.Option(metavar="DURATION", help="How long to wait, such as 90s or 5m.")]
Adopt = Annotated[bool, typer.Option("--adopt", help="Take over objects that another tool made.")]
Conflicts = Annotated[bool, typer.Option("--force-conflicts", help="Take over fields that another tool applies.")]
Prune = Annotated[bool, typer.Option("--prune/--no-prune", help="Delete objects that are no longer in the set.")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the release.")]
NamespaceName = Annotated[str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Namespace of the release.")]
Components = Annotated[
    list[str], typer.Option("--component", "-c", metavar="NAME", help="Only this component. Default: all.")
]


class DryRun(StrEnum):
    """What `--dry-run` accepts, as in kubectl."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class Cluster(Struct, frozen=True, kw_only=True):
    """The cluster, and the release in it."""

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    name: Name = "numalign"
    namespace: NamespaceName = "numalign-system"

    @property
    def installation(self) -> Installation:
        from numalign.deploy.apply.inventory import Installation

        return Installation(self.name, self.namespace)


class Wanted(Cluster, frozen=True, kw_only=True):
    """Also which parts, and what may be taken from others."""

    component: Components = []
    adopt: Adopt = False
    force_conflicts: Conflicts = False
    prune: Prune = True


@app.command(epilog="Example: numalign deploy diff -f values.yaml")
@bundled
def diff(
    given: ValueOptions,
    wanted: Wanted,
    client_side: Annotated[
        bool, typer.Option("--client-side", help="Compare what is written, without a dry run of the server.")
    ] = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Show what `deploy apply` would change in the cluster, field by field. Changes nothing.

    Exit code: 0 if nothing would change, 2 if something would, 1 after an error."""
    values = values_of(given)

    async def compare(server: Server) -> list[Change]:
        from numalign.deploy.apply import applying

        plan = await _planned(server, values, wanted, seconds=0)
        return await applying.preview(server, plan, by_server=not client_side)

    changes = _asked(wanted, compare)
    _show_changes(changes, wanted, fmt)
    _exit_if_different(changes)


@app.command(epilog="Example: numalign deploy apply -f values.yaml --timeout 5m")
@bundled
def apply(
    given: ValueOptions,
    wanted: Wanted,
    dry_run: Annotated[
        DryRun, typer.Option(help="Only show what would change: as the server says, or without asking it.")
    ] = DryRun.NONE,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything is ready and reports.")] = True,
    timeout: Timeout = "2m",
    fmt: Output = Format.TABLE,
) -> None:
    """Install numalign, or bring an installation up to date. It is safe to repeat.

    Checks your rights and has the server check every object before it changes anything. Then waits until all pods are
    ready and every node of an agent has a fresh topology report.

    Exit code: 0 if all is done, 1 after an error, 3 if something was not ready in time."""
    values, seconds = values_of(given), seconds_of(timeout)
    tell = _told(fmt)

    async def bring(server: Server) -> tuple[list[Change], bool]:
        from numalign.deploy.apply import applying, waiting

        plan = await _planned(server, values, wanted, seconds)
        expected = await applying.preview(server, plan, by_server=dry_run is not DryRun.CLIENT)
        await applying.check(server, plan, expected)
        if dry_run is not DryRun.NONE:
            return expected, True
        changes = await applying.perform(server, plan, expected, tell)
        if not wait:
            return changes, True
        try:
            await waiting.ready(server, plan.refs, seconds, _progress)
        except waiting.TimedOut as problem:
            _not_ready(problem.left)
            return changes, False
        return changes, True

    changes, is_ready = _asked(wanted, bring)
    if dry_run is not DryRun.NONE or fmt is not Format.TABLE:
        more = {"ready": is_ready} if dry_run is DryRun.NONE and wait else {"dryRun": dry_run.value}
        _show_changes(changes, wanted, fmt, more)
    else:
        _show_summary(changes, ready=is_ready and wait)
    if not is_ready:
        raise typer.Exit(TIMEOUT)


@app.command(epilog="Example: numalign deploy remove --timeout 5m")
@bundled
def remove(
    cluster: Cluster,
    purge_crds: Annotated[
        bool, typer.Option("--purge-crds", help="Also delete the definition of reports, and so all reports.")
    ] = False,
    timeout: Timeout = "2m",
    fmt: Output = Format.TABLE,
) -> None:
    """Take an installation out of the cluster, in the reverse order of its creation, and wait until it is gone.

    Only objects that `deploy apply` made are deleted. Exit code: 0 if all is gone, 1 after an error, 3 if something is
    still there."""
    seconds, tell = seconds_of(timeout), _told(fmt)

    async def take(server: Server) -> list[Any]:
        from numalign.deploy.apply import inventory, removing
        from numalign.deploy.apply.applying import Refused

        plan = await removing.plan_for(server, cluster.installation, purge=purge_crds)
        if plan.known.live is None and not plan.live:
            tell(await inventory.absence(server, cluster.installation))
        _warn(plan.known.problems)
        lacking = await removing.check(server, plan)
        if lacking:
            raise Refused(lacking)
        return await removing.perform(server, plan, seconds, tell)

    from numalign.cli.results.install import deployment

    found = _asked(cluster, take)
    if fmt is not Format.TABLE:
        listed = [{"action": each.action, **deployment.object_of(each), "why": each.why} for each in found]
        output.show(output.structured({"release": _release(cluster), "objects": listed}, fmt))
    if any(each.action == "still there" for each in found):
        raise typer.Exit(TIMEOUT)


@app.command(epilog="Example: numalign deploy status -o json")
@bundled
def status(cluster: Cluster, fmt: Output = Format.TABLE) -> None:
    """Show the objects of an installation and whether they are ready, and how many nodes have a fresh report.

    Exit code: 0 if all is ready, 2 if something is not or nothing is installed, 1 after an error."""
    from numalign.cli.results.install import deployment
    from numalign.deploy.apply import inventory, waiting

    async def look(server: Server) -> tuple[list[Any], str]:
        known = await inventory.read(server, cluster.installation)
        _warn(known.problems)
        nothing = "" if known.refs else await inventory.absence(server, cluster.installation)
        return await waiting.standing(server, known.refs), nothing

    found, nothing = _asked(cluster, look)
    is_ready = bool(found) and all(each.ready for each in found)
    if fmt is not Format.TABLE:
        document = {"release": _release(cluster), "installed": bool(found), "ready": is_ready, "objects": found}
        output.show(output.structured(document, fmt))
    else:
        output.show(deployment.standing_text(found) if found else nothing)
    if not is_ready:
        raise typer.Exit(FINDINGS)


@app.command(epilog="Example: numalign deploy wait --timeout 5m")
@bundled
def wait(cluster: Cluster, timeout: Timeout = "2m") -> None:
    """Wait until an installation is ready: rollouts complete, agents on all their nodes, a fresh report of each.

    Exit code: 0 if it is ready, 1 after an error or where nothing is installed, 3 if it was not ready in time."""
    seconds = seconds_of(timeout)

    async def ready(server: Server) -> bool:
        from numalign.deploy.apply import inventory, waiting

        known = await inventory.read(server, cluster.installation)
        if not known.refs:
            output.fail(await inventory.absence(server, cluster.installation), ERROR)
        try:
            await waiting.ready(server, known.refs, seconds, _progress)
        except waiting.TimedOut as problem:
            _not_ready(problem.left)
            return False
        return True

    if not _asked(cluster, ready):
        raise typer.Exit(TIMEOUT)
    output.show(f"{cluster.name} is ready")


@app.command(epilog="Example: numalign deploy detect --suggest-values > values.yaml")
def detect(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    platform: Annotated[
        str, typer.Option("--platform", "-P", metavar="KIND:VERSION", help="Do not look, it is this one.")
    ] = "",
    suggest_values: Annotated[
        bool, typer.Option("--suggest-values", help="Print a values file for this cluster instead.")
    ] = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Say which Kubernetes this is, and where its kubelets have their files.

    Exit code: 0, 2 if the platform is not known, 1 after an error."""
    from numalign.deploy.apply import platforms

    supplied = platforms.parsed(platform)
    if platform and supplied is None:
        output.fail(f"--platform {platform} is not a kind and a version; write one like Kubernetes:1.37.1", ERROR)
    where = Cluster(kubeconfig=kubeconfig, context=context)
    found = _asked(where, lambda server: platforms.detect(server, supplied))
    if suggest_values:
        values = platforms.suggested_values(found)
        output.show(output.structured(values, Format.JSON if fmt is Format.JSON else Format.YAML) if values else "{}")
    elif fmt is not Format.TABLE:
        output.show(output.structured(platforms.described(found), fmt))
    else:
        output.show("\n".join(platforms.lines(found)))
    if found.problem:
        raise typer.Exit(FINDINGS)


@app.command(epilog="Example: numalign deploy images --raw --registry registry.example.com | xargs -n2 crane copy")
@bundled
def images(
    given: ValueOptions,
    release: ReleaseOptions,
    registry: Annotated[str, typer.Option(metavar="HOST", help="The registry of a mirror.")] = "",
    raw: Annotated[
        bool, typer.Option("--raw", "-r", help="Only references; with --registry also the copies'.")
    ] = False,
    fmt: Output = Format.TABLE,
) -> None:
    """List the images of an installation. With a registry, each image and its copy there. Needs no cluster."""
    from numalign.cli.display.formats import Page
    from numalign.deploy import installation
    from numalign.deploy.apply import images

    values, where = values_of(given), release_of(release)
    here = installation.objects(values, where, release.component)
    found = images.used(here)
    if registry:
        _require_registry(registry)
        moved = structs.replace(values, global_=structs.replace(values.global_, image_registry=registry))
        found = images.mirrored(here, installation.objects(moved, where, release.component))
    if raw:
        output.show("\n".join(dict.fromkeys(f"{each.reference} {each.mirror}".strip() for each in found)))
    elif fmt is not Format.TABLE:
        output.show(output.structured({"images": found}, fmt))
    else:
        page = Page()
        table = page.table("COMPONENT", "IMAGE", *(["MIRROR"] if registry else []))
        for each in found:
            table.add_row(each.component, each.reference, *([each.mirror] if registry else []))
        page.add(table)
        output.show(page.text())


def _require_registry(registry: str) -> None:
    """BadObject for what no image reference can begin with."""
    from numalign.deploy import values

    try:
        values.checked({"global": {"imageRegistry": registry}}, "")
    except BadObject as problem:
        raise BadObject("Option", "--registry", "", problem.why) from None


async def _planned(server: Server, values: Values, wanted: Wanted, seconds: float) -> ApplyPlan:
    from numalign.deploy.apply import applying

    options = applying.ApplyOptions(
        adopt=wanted.adopt, force_conflicts=wanted.force_conflicts, prune=wanted.prune, timeout=seconds
    )
    objects = await rendered(server, values, wanted)
    plan = await applying.plan_for(server, wanted.installation, objects, options)
    _warn(plan.known.problems)
    return plan


async def rendered(server: Server, values: Values, wanted: Wanted) -> list[dict[str, Any]]:
    """The objects for this cluster: its version and its APIs decide about optional parts."""
    from numalign.deploy import installation
    from numalign.deploy.apply.applying import BUILT_IN
    from numalign.deploy.release import Release

    if wanted.namespace not in BUILT_IN:
        values = structs.replace(values, namespace=structs.replace(values.namespace, create=True))
    release = Release(
        name=wanted.name,
        namespace=wanted.namespace,
        kube_version=(await server.version()).removeprefix("v"),
        api_versions=frozenset(await server.api_versions()),
    )
    components = [*wanted.component, *(["namespace"] if wanted.component else [])]
    return installation.objects(values, release, components)


def _asked(cluster: Cluster, ask: Callable[[Server], Awaitable[T]]) -> T:
    require_names(cluster.namespace, cluster.name)
    return asked(cluster.kubeconfig, cluster.context, ask)


def asked(kubeconfig: str, context: str, ask: Callable[[Server], Awaitable[T]]) -> T:
    """Runs it with the cluster's server; errors end the command with a sentence."""
    from numalign.deploy.apply import applying, inventory, waiting
    from numalign.deploy.apply.server import Server
    from numalign.kube import clock, errors
    from numalign.kube.access import access
    from numalign.kube.client import Client

    found = access.default(kubeconfig, context)

    async def run() -> T:
        async with Client(found) as client:
            return await ask(Server(client))

    try:
        with clock.event_loop_runner() as runner:
            return runner.run(run())
    except applying.Refused as problem:
        _refuse(problem.problems)
    except waiting.TimedOut as problem:
        _not_ready(problem.left)
        raise typer.Exit(TIMEOUT) from None
    except (errors.Unauthorized, errors.Unreachable) as problem:
        raise sources.unanswered(found, problem) from None
    except (errors.KubeError, applying.Stopped, inventory.Busy) as problem:
        output.fail(str(problem), ERROR)
    except KeyboardInterrupt:
        output.fail("interrupted; run the command again to continue", ERROR)


def _refuse(problems: tuple[str, ...]) -> NoReturn:
    for problem in problems[:-1]:
        typer.echo(f"numalign: {output.printable(problem)}", err=True)
    output.fail(f"{problems[-1]}\nnothing was changed".replace("\n", "; "), ERROR)


def _not_ready(left: Any) -> None:
    for each in left:
        output.warn(f"{each.object}: {each.words}")


def _warn(problems: tuple[str, ...]) -> None:
    for problem in problems:
        output.warn(problem)


def _progress(words: str) -> None:
    typer.echo(f"waiting: {output.printable(words)}", err=True)


def _told(fmt: Format) -> Callable[[str], None]:
    """Lines as they happen; on stderr where stdout gets a document."""
    return lambda words: typer.echo(output.printable(words), err=fmt is not Format.TABLE)


def _release(cluster: Cluster) -> dict[str, str]:
    return {"name": cluster.name, "namespace": cluster.namespace}


def _show_changes(changes: list[Change], wanted: Wanted, fmt: Format, more: Mapping[str, object] = {}) -> None:
    from numalign.cli.results.install import deployment
    from numalign.deploy.apply import applying

    if fmt is Format.TABLE:
        drawn = deployment.diff_text(changes)
        return output.show(drawn if applying.is_different(changes) else f"{drawn}\nno difference".strip("\n"))
    document = {
        "release": _release(wanted),
        "changes": [deployment.plain_change(each) for each in changes],
        "summary": applying.summary(changes),
        **more,
    }
    output.show(output.structured(document, fmt))


def _show_summary(changes: list[Change], *, ready: bool) -> None:
    from numalign.cli.results.install import deployment
    from numalign.deploy.apply import applying

    words = deployment.summary_text(applying.summary(changes))
    output.show(f"{words}{'; ready' if ready else ''}")


def _exit_if_different(changes: list[Change]) -> None:
    from numalign.deploy.apply import applying

    if applying.is_different(changes):
        raise typer.Exit(FINDINGS)


def seconds_of(text: str) -> float:
    from numalign.api.decode import fields
    from numalign.api.decode.fields import Field

    found = fields.duration_seconds(Field(f"{text}s" if text.isdecimal() else text, "", "Option", "--timeout"))
    if found < 0:
        raise BadObject("Option", "--timeout", "", f"{echo(text)} is negative; write a length of time like 90s or 5m")
    return found
