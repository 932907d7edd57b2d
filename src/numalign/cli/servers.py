"""The options of the servers that `scheduler run` and `extender run` share, and what they stand for.

Both commands read certificates and credentials with these functions and then run one `SchedulerProcess`. The functions
import what they call when they run, so that help stays fast."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.output import LogForm

if TYPE_CHECKING:
    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.kube.transport.auth import Access
    from numalign.scheduler.http import serving
    from numalign.scheduler.http.serving import ExpanderEndpoint, ExtenderEndpoint, SchedulerProcess
    from numalign.scheduler.provisioning.answers import Terms

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
EXTENDER_PORT: Final = 8443
HOLD: Final = 5.0

Certificate = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="The TLS certificate of the server. Default: no TLS on the loopback, self-signed elsewhere.",
    ),
]
Key = Annotated[
    str, typer.Option(metavar="FILE", help="The private key of the certificate, unless it is in the same file.")
]
ClientAuthority = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Certificates of authorities that issue the client certificates of the extender. Without it clients need"
        " a bearer token and the right to POST, and kube-scheduler sends none.",
    ),
]
ExtenderPort = Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="Port of the extender.")]
Hold = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=600,
        metavar="SECONDS",
        help="How long the extender keeps a pod charged whose binding is not seen.",
    ),
]


class EvictsChoice(StrEnum):
    """As the extender's settings have it."""

    NONE = "none"
    NUMALIGN = "numalign"
    KUBE_SCHEDULER = "kube-scheduler"


Preempting = Annotated[
    EvictsChoice,
    typer.Option(
        "--preemption",
        help="Who evicts pods to make room in a zone. kube-scheduler can from version 1.38 on; numalign evicts pods"
        " itself beside every version.",
    ),
]
ExpanderPort = Annotated[
    int,
    typer.Option(metavar="PORT", min=0, max=65535, help="Port of cluster-autoscaler's gRPC expander; 0: do not serve."),
]
ProvisioningClass = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Answer ProvisioningRequests of this class, such as capacity.numalign.io. Default: answer none.",
    ),
]


def start_log(form: LogForm, verbosity: int) -> None:
    from numalign.process import log

    log.start("json" if form is LogForm.JSON else "text", verbosity)


def access(kubeconfig: str, config: Configuration) -> Access:
    from numalign.kube.access import access

    return access.default(kubeconfig or config.client_connection.kubeconfig)


def from_files(command: str, certificate: str, key: str) -> serving.ServerCertificate:
    from numalign.process.certificates import CertificateFiles, Unusable
    from numalign.scheduler.http import serving

    if not certificate:
        raise BadObject(command, key, "--tls-key", "is of no use alone; give --tls-certificate, too")
    try:
        files = CertificateFiles(Path(certificate), Path(key or certificate))
    except Unusable as problem:
        raise BadObject(command, certificate, "--tls-certificate", str(problem)) from None
    return serving.ServerCertificate(files.context, files)


def of_our_own(command: str, address: str, *, always: bool = False) -> serving.ServerCertificate | None:
    """A self-signed certificate; None: without TLS, on the loopback unless `always`."""
    if address in LOOPBACK and not always:
        return None

    from numalign.process import certificates
    from numalign.process.certificates import CryptographyMissing
    from numalign.scheduler.http import serving

    hosts = ("localhost", socket.gethostname(), "127.0.0.1", "::1")
    try:
        return serving.ServerCertificate(certificates.self_signed_context(hosts, datetime.now(UTC)))
    except CryptographyMissing:
        why = (
            "is not a loopback address: give --tls-certificate, or install numalign[tls] for a self-signed certificate"
        )
        raise BadObject(command, address, "--bind-address", why) from None


def expander(command: str, place: tuple[str, int], certificate: tuple[str, str]) -> ExpanderEndpoint:
    """`certificate`: the files of certificate and key."""
    from numalign.scheduler.http.serving import ExpanderEndpoint

    if not certificate[0]:
        raise BadObject(command, place[0], "--tls-certificate", "is missing: cluster-autoscaler verifies the expander")
    try:
        pem = Path(certificate[0]).read_bytes(), Path(certificate[1] or certificate[0]).read_bytes()
    except OSError as problem:
        raise BadObject(command, certificate[0], "--tls-certificate", f"cannot be read: {problem.strerror}") from None
    return ExpanderEndpoint(address=place[0], port=place[1], certificate=pem)


def extender(
    command: str,
    place: tuple[str, int],
    certificate: tuple[str, str],
    authority: str,
    hold: float,
    evicts: EvictsChoice,
) -> ExtenderEndpoint:
    """`certificate`: the files of certificate and key; `authority`: that of the clients."""
    from numalign.scheduler.extender.extender import Evicts, ExtenderSettings
    from numalign.scheduler.http.serving import ExtenderEndpoint

    if not certificate[0]:
        why = "is missing: kube-scheduler and the extender know each other by certificates"
        raise BadObject(command, place[0], "--tls-certificate", why)
    shown = from_files(command, *certificate)
    # kube-scheduler opens a connection for every third pod, because Go keeps only two that are idle, and it resumes no
    # session: tickets would cost a third of each handshake.
    shown.context.num_tickets = 0
    if authority:
        try:
            shown.context.load_verify_locations(authority)
        except (OSError, ssl.SSLError) as problem:
            raise BadObject(command, authority, "--client-ca", f"cannot be used: {problem}") from None
        shown.context.verify_mode = ssl.CERT_REQUIRED
    return ExtenderEndpoint(
        address=place[0],
        port=place[1],
        certificate=shown,
        authenticated=bool(authority),
        settings=ExtenderSettings(hold=hold, evicts=Evicts(evicts.value)),
    )


def provisioning(command: str, class_name: str) -> Terms | None:
    """None: no ProvisioningRequest is answered."""
    from numalign.scheduler.provisioning import kinds
    from numalign.scheduler.provisioning.answers import Terms

    if not class_name:
        return None
    if class_name.endswith(kinds.RESERVED):
        why = "is a class that cluster-autoscaler answers; choose a name of your own, such as capacity.numalign.io"
        raise BadObject(command, class_name, "--provisioning-class", why)
    return Terms(class_name=class_name)


def run(process: SchedulerProcess, place: str) -> None:
    """Runs the process until a signal; exits with 1 where it loses its lease, with 2 where it cannot be served."""
    from numalign.kube import clock
    from numalign.kube.leader.leading import LeadershipLost
    from numalign.scheduler.http import serving

    try:
        with clock.event_loop_runner() as runner:
            runner.run(serving.serve(process))
    except LeadershipLost as problem:
        output.fail(str(problem), 1)
    except OSError as problem:
        output.fail(f"{place} cannot be served: {problem.strerror or problem}")
