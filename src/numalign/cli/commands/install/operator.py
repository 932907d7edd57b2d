"""`numalign operator`: runs the operator, and prints the objects that install it.

The work is done by `deploy.operator`. The commands import it when they run, so that help stays fast."""

from __future__ import annotations

import socket
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from numalign.cli import output
from numalign.cli.commands.install.deploy import ValueOptions, require_names, written
from numalign.cli.options import BindAddress, Kubeconfig, LogFormat, Output, Port, Verbosity, bundled
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.deploy.model import Values
    from numalign.deploy.operator.main import Setup
    from numalign.deploy.operator.plan import PlanOptions
    from numalign.kube.transport.auth import Access

app = typer.Typer(no_args_is_help=True)
NAMESPACE = "numalign-system"


class ImagePolicy(StrEnum):
    ANY = "any"
    DIGEST = "digest"
    TRUSTED = "trusted"
    OWN = "own"


Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        envvar="NAMESPACE",
        help="The namespace of the agents and the scheduler.",
    ),
]
ValuesFile = Annotated[
    str,
    typer.Option(
        "--values", "-f", metavar="FILE", help="Values of the chart, for what the custom resources do not say."
    ),
]
AgentImage = Annotated[str, typer.Option(metavar="IMAGE", help="The agent's image. Default: that of the values.")]
SchedulerImage = Annotated[
    str, typer.Option(metavar="IMAGE", help="The scheduler's image. Default: that of the values.")
]
Policy = Annotated[
    ImagePolicy,
    typer.Option(
        help="Which imageSpec is accepted: any, those with a digest, those with a trusted digest, or none (own)."
    ),
]
Trusted = Annotated[
    str, typer.Option(metavar="DIGESTS", help="Digests for the image policy trusted, separated by commas.")
]
Elects = Annotated[bool, typer.Option("--leader-elect/--no-leader-elect", help="Work only while holding the lease.")]


@app.callback()
def operator() -> None:
    """Keep agents and scheduler as NUMAResourcesOperator and NUMAResourcesScheduler objects say."""


class OperatorOptions(Struct, frozen=True, kw_only=True):
    """The options of `numalign operator run`."""

    kubeconfig: Kubeconfig = ""
    namespace: Namespace = NAMESPACE
    values: ValuesFile = ""
    agent_image: AgentImage = ""
    scheduler_image: SchedulerImage = ""
    image_policy: Policy = ImagePolicy.ANY
    trusted_digests: Trusted = ""
    leader_elect: Elects = True
    bind_address: BindAddress = "127.0.0.1"
    port: Port = 0
    verbosity: Verbosity = 2
    log_format: LogFormat = output.LogForm.TEXT


@app.command("run", epilog="Example: numalign operator run --namespace numalign-system --port 10263")
@bundled
def run(options: OperatorOptions) -> None:
    """Deploy agents and scheduler as the custom resources say, until a signal ends the process.

    Exit code: 0 after a signal, 1 if leadership was lost, 2 if the operator cannot start."""
    from numalign.kube import clock
    from numalign.kube.access import access
    from numalign.kube.errors import KubeError
    from numalign.kube.leader.leading import LeadershipLost
    from numalign.process import log

    log.start("json" if options.log_format is output.LogForm.JSON else "text", options.verbosity)
    require_names(options.namespace)
    values = _values(options, _document(options.values))
    login = access.default(options.kubeconfig)
    try:
        with clock.event_loop_runner() as runner:
            runner.run(_run(options, values, login))
    except LeadershipLost as problem:
        output.fail(str(problem), 1)
    except KubeError as problem:
        output.fail(str(problem))
    except OSError as problem:
        output.fail(f"{options.bind_address}:{options.port} cannot be served: {problem.strerror or problem}")


async def _run(options: OperatorOptions, values: Values, login: Access) -> None:
    from numalign.deploy.operator import main
    from numalign.deploy.operator.main import OperatorProcess
    from numalign.kube.client import Client
    from numalign.process import tasks

    async with Client(login) as client, Client(login) as elector:
        setup = _setup(options, values, await main.kube_version(client))
        if not await main.is_defined(client):
            make = "numalign operator crds | kubectl apply --server-side -f -"
            output.warn(f"the definitions of the two custom resources are missing; waiting for them: {make}")
        await tasks.until_signalled(OperatorProcess(setup, client, elector).run())


def _setup(options: OperatorOptions, values: Values, kube_version: str) -> Setup:
    from numalign.deploy.operator.main import Setup

    return Setup(
        options=_options(options, values, kube_version),
        instance=socket.gethostname(),
        elects=options.leader_elect,
        address=(options.bind_address, options.port) if options.port else None,
    )


def _options(options: OperatorOptions, values: Values, kube_version: str) -> PlanOptions:
    from numalign.deploy.operator import fields, plan
    from numalign.deploy.operator.plan import PlanOptions
    from numalign.deploy.release import Release

    release = Release(namespace=options.namespace, kube_version=kube_version, manager=fields.MANAGER)
    trusted = plan.digests(options.trusted_digests)
    return PlanOptions(release=release, values=values, image_policy=options.image_policy.value, trusted=trusted)


def _values(options: OperatorOptions, document: object) -> Values:
    from numalign.deploy import values
    from numalign.deploy.operator import plan

    found = values.read(document, options.values)
    return plan.base_values(found, options.agent_image, options.scheduler_image)


def _document(file: str) -> object:
    """Read once: the standard input has no second time."""
    from numalign.cli import fileio

    return fileio.only(file).value if file else None


@app.command("render", epilog="Example: numalign operator render --set global.imageRegistry=registry.example.com")
@bundled
def render(
    given: ValueOptions,
    namespace: Namespace = NAMESPACE,
    image: Annotated[str, typer.Option(metavar="IMAGE", help="The operator's image. Default: the agent's.")] = "",
    agent_image: AgentImage = "",
    scheduler_image: SchedulerImage = "",
    fmt: Output = Format.YAML,
) -> None:
    """Print the objects that install the operator: definitions, account, rights, Deployment.

    Exit code: 0, or 2 if the values cannot be used."""
    from numalign.deploy.operator import install, plan
    from numalign.deploy.release import Release

    require_names(namespace)
    options = OperatorOptions(namespace=namespace, agent_image=agent_image, scheduler_image=scheduler_image)
    document = written(given) or None
    found = _values(options, document)
    mine = plan.own_image(image, found.agent.image)
    args = [f"--agent-image={agent_image}"] if agent_image else []
    args += [f"--scheduler-image={scheduler_image}"] if scheduler_image else []
    made = install.objects(Release(namespace=namespace), found, mine, tuple(args), document)
    _print(made, fmt)


@app.command("crds", epilog="Example: numalign operator crds | kubectl apply --server-side -f -")
def crds(fmt: Output = Format.YAML) -> None:
    """Print the CustomResourceDefinitions of the two kinds."""
    from numalign.deploy.operator import crds

    _print(crds.definitions(), fmt)


def _print(made: list[dict[str, object]], fmt: Format) -> None:
    if fmt is Format.JSON:
        output.show(output.structured({"apiVersion": "v1", "kind": "List", "items": made}, fmt))
        return
    for tree in made:
        output.show(f"---\n{output.structured(tree, Format.YAML)}")
