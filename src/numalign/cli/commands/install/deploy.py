"""`numalign deploy`: installs numalign in a cluster from one set of values, the same that the Helm chart takes.

All commands of the group have the same exit codes: 0 if all is well, 1 for wrong usage, values that cannot be used and
technical errors, 2 for findings, 3 if something was not ready in time.

`render` prints the objects and needs no cluster. The commands import what they call when they run, so that help stays
fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from typer.core import TyperGroup

from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.options import bundled
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.deploy.release import Release
    from numalign.deploy.values import Values

ERROR = 1
# Typer brings click under another name from version to version; the class of all its usage errors is this one's base.
WRONG_USAGE: Any = typer.BadParameter.__base__


class DeployCommands(TyperGroup):
    """Ends with code 1 where other groups end with 2, which means findings here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except WRONG_USAGE as problem:
            problem.exit_code = ERROR
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BadObject as problem:
            output.fail(str(problem), ERROR)
        except WRONG_USAGE as problem:
            problem.exit_code = ERROR
            raise


app = typer.Typer(cls=DeployCommands, no_args_is_help=True)

Files = Annotated[
    list[str], typer.Option("--values", "-f", metavar="FILE", help="A values file; - is stdin. Later ones win.")
]
Set = Annotated[list[str], typer.Option("--set", metavar="PATH=VALUE", help="Set single values, as Helm does.")]
SetString = Annotated[list[str], typer.Option("--set-string", metavar="PATH=TEXT", help="The same; values are text.")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the release.")]
NamespaceName = Annotated[str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Namespace of the release.")]
KubeVersion = Annotated[str, typer.Option(metavar="VERSION", help="The Kubernetes version to render for.")]
ApiVersions = Annotated[
    list[str],
    typer.Option("--api-versions", metavar="GROUP/VERSION", help="An API that the cluster serves, for optional parts."),
]
Components = Annotated[
    list[str], typer.Option("--component", "-c", metavar="NAME", help="Only this component. Default: all.")
]
Output = Annotated[Format, typer.Option("--output", "-o", help="Output format; table lists the objects.")]


class ValueOptions(Struct, frozen=True, kw_only=True):
    """Where the values of an installation come from."""

    values: Files = []
    set: Set = []
    set_string: SetString = []


class ReleaseOptions(Struct, frozen=True, kw_only=True):
    """The release, what its cluster offers, and the parts that are wanted."""

    name: Name = "numalign"
    namespace: NamespaceName = "numalign-system"
    kube_version: KubeVersion = "1.37.1"
    api_versions: ApiVersions = []
    component: Components = []


@app.callback()
def deploy() -> None:
    """Install numalign in a cluster, from the values that the Helm chart takes, too."""


@app.command("render", epilog="Example: numalign deploy render -f values.yaml --set agent.preset=rke2")
@bundled
def render(
    given: ValueOptions,
    release: ReleaseOptions,
    fmt: Output = Format.YAML,
) -> None:
    """Print the objects of an installation, in the order in which they have to be applied. Needs no cluster.

    Exit code: 0, or 1 if the values cannot be used."""
    from numalign.deploy import installation

    objects = installation.objects(values_of(given), release_of(release), release.component)
    output.show(_listed(objects) if fmt is Format.TABLE else manifest(objects, fmt))


def values_of(given: ValueOptions) -> Values:
    """The values of files and settings. BadObject names the field that cannot be used."""
    from numalign.cli import fileio
    from numalign.deploy import values

    source = fileio.shown(*given.values) if not (given.set or given.set_string) else ""
    found = values.read(written(given), source)
    _check_configuration(found)
    return found


def written(given: ValueOptions) -> dict[str, Any]:
    """Files and settings as one values file, without the defaults."""
    from numalign.cli import fileio
    from numalign.deploy import overrides, values

    found: dict[str, Any] = {}
    for file in given.values:
        for document in fileio.documents(file):
            found = values.over(found, values.checked(document.value, document.place))
    for settings, text in ((given.set, False), (given.set_string, True)):
        for setting in settings:
            overrides.applied(found, setting, text=text)
    return found


def release_of(given: ReleaseOptions) -> Release:
    from numalign.api.errors import echo
    from numalign.deploy.release import NUMBERS, Release

    if not NUMBERS.match(given.kube_version):
        why = f"{echo(given.kube_version)} is not a Kubernetes version; write one like 1.37.1"
        raise BadObject("Option", "--kube-version", "", why)
    require_names(given.namespace, given.name)
    return Release(
        name=given.name,
        namespace=given.namespace,
        kube_version=given.kube_version,
        api_versions=frozenset(given.api_versions),
    )


def require_names(namespace: str, release: str = "") -> None:
    """BadObject for names that no API server would take."""
    from numalign.api.errors import echo
    from numalign.deploy.release import LONGEST_NAMESPACE, LONGEST_RELEASE, NAME

    asked = [("--namespace", namespace, LONGEST_NAMESPACE)]
    asked += [("--name", release, LONGEST_RELEASE)] if release else []
    for option, name, most in asked:
        if not NAME.fullmatch(name) or len(name) > most:
            why = f"{echo(name)} is not a name of small letters, digits and dashes, at most {most} of them"
            raise BadObject("Option", option, "", why)


def _check_configuration(values: Values) -> None:
    """Has the scheduler read its configuration: it knows more about it than the values do."""
    from numalign.deploy import schedulerfile
    from numalign.deploy.values import KIND, SOME_LEASE
    from numalign.scheduler import settings

    try:
        read = settings.read(schedulerfile.document(values.scheduler, SOME_LEASE), "")
    except BadObject as problem:
        raise BadObject(KIND, "", f"scheduler.config.{problem.field}", problem.why) from None
    for warning in read.warnings:
        output.warn(f"scheduler.config: {warning}")


def manifest(objects: list[dict[str, Any]], fmt: Format) -> str:
    """What kubectl applies: YAML documents, or a List in JSON."""
    if fmt is Format.JSON:
        return output.structured({"apiVersion": "v1", "kind": "List", "items": objects}, fmt)
    return "\n---\n".join(output.structured(each, fmt) for each in objects)


def _listed(objects: list[dict[str, Any]]) -> str:
    from numalign.cli.display.formats import Page
    from numalign.deploy.render import LABEL

    page = Page()
    table = page.table("COMPONENT", "KIND", "NAMESPACE", "NAME")
    for each in objects:
        metadata = each["metadata"]
        table.add_row(metadata["labels"][LABEL], each["kind"], metadata.get("namespace", ""), metadata["name"])
    page.add(table)
    return page.text()
