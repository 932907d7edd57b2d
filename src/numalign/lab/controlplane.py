"""Runs etcd and a real kube-apiserver on loopback, in a folder of their own.

Benchmarks and tests that compare with the real server enter `running`, which ends both programs. A lab starts the same
programs as two of its parts (`programs_of`), with an account per component and RBAC. etcd does not sync to disk.
Every local user can connect to a port on loopback, so every port asks for credentials: the API server for a token on
every path, etcd for a client certificate of an authority whose key is discarded (lab spec, "Control plane")."""

import contextlib
import http.client
import random
import secrets
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import build
from numalign.lab.errors import LabError
from numalign.lab.processes import Part, ProgramSpec, end_all
from numalign.process import certificates, privatefile
from numalign.process.certificates import Authority, CryptographyMissing, KeyPair, Validity

HOST: Final = "127.0.0.1"
ADMINS: Final = "system:masters"
SECONDS_TO_START: Final = 90
PORTS: Final = range(20_000, 30_000)
"""Below the ephemeral ports, from which an outgoing connection could take one before its server does."""

SERVICE_ADDRESSES: Final = "10.0.0.0/24"
SERVICE_NAMES: Final = ("10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
"""The names of the server inside a cluster."""

# The plugin waits for an object that kube-controller-manager creates.
WITHOUT_CONTROLLERS: Final = "--disable-admission-plugins=ServiceAccount"


class ServerBinaries(Struct, frozen=True):
    etcd: Path
    apiserver: Path


class ControlPlane(Struct, frozen=True):
    port: int
    token: str
    authority: Path
    """The certificate of the authority that issued the server's certificate."""
    pids: dict[str, int]


class Account(Struct, frozen=True):
    """A user of the server, with token and group."""

    user: str
    token: str
    group: str = ""
    certificate: KeyPair | None = None
    """Where it has no token, for accounts that are made while the server runs."""


def account(user: str, group: str = "") -> Account:
    return Account(user, secrets.token_urlsafe(24), group)


class ServerPlan(Struct, frozen=True, kw_only=True):
    """How a server is started."""

    folder: Path
    etcd_port: int
    peer_port: int
    port: int
    bind: str = HOST
    """The address that the API server listens on."""
    host: str = HOST
    """The address at which clients reach it."""
    network: str = ""
    """The path of the network namespace of both programs; empty: the real machine's."""
    authorization: str = "AlwaysAllow"
    flags: tuple[str, ...] = (WITHOUT_CONTROLLERS,)
    """Further flags of the server."""

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate that clients of the API server verify it with."""
        return self.certificate("ca")

    def certificate(self, name: str) -> Path:
        return self.folder / "certificates" / f"{name}.crt"

    def private(self, name: str) -> Path:
        """The key of that certificate."""
        return self.folder / "certificates" / f"{name}.key"

    @property
    def key(self) -> Path:
        """The key that signs service account tokens, and its public half."""
        return self.folder / "service-accounts.key"


def programs() -> ServerBinaries | None:
    """The programs, built if they are missing; None without Go."""
    if not build.found():
        return None
    etcd, apiserver = build.build(build.chosen(["etcd", "kube-apiserver"]), lambda _: None)
    return ServerBinaries(etcd.path, apiserver.path)


@contextlib.contextmanager
def running(folder: Path, found: ServerBinaries) -> Iterator[ControlPlane]:
    plan = ServerPlan(folder=folder, etcd_port=free_port(), peer_port=free_port(), port=free_port())
    admin = account("admin", ADMINS)
    prepare(plan, [admin])
    parts = [Part(program) for program in programs_of(plan, found)]
    try:
        for part in parts:
            part.start()
        until = time.monotonic() + SECONDS_TO_START
        while not is_ready(plan, admin.token):
            require_start(parts, until)
            time.sleep(0.2)
        pids = {part.program.name: part.pid or 0 for part in parts}
        yield ControlPlane(plan.port, admin.token, plan.authority, pids)
    finally:
        end_all(parts)


def require_start(parts: Iterable[Part], until: float) -> None:
    """LabError if a program has ended or the time is over."""
    for part in parts:
        part.require()
        if time.monotonic() > until:
            raise LabError(f"{part.program.title} is not ready: {part.last_words()}")


def prepare(plan: ServerPlan, accounts: Iterable[Account]) -> Authority:
    """Write the files that etcd and the server read at start. The key of the returned authority, which the server's
    clients trust, is written nowhere."""
    plan.authority.parent.mkdir(parents=True, exist_ok=True)
    tokens = (f'{each.token},{each.user},{each.user},"{each.group}"\n' for each in accounts)
    privatefile.write(plan.folder / "tokens.csv", "".join(tokens))
    try:
        signing = certificates.signing_key()
        issuer = _certify(plan)
    except CryptographyMissing as problem:
        raise LabError(str(problem)) from None
    # The public half separately: the server does not derive it from a private key in this format.
    privatefile.write(plan.key, signing.private + signing.public)
    return issuer


def _certify(plan: ServerPlan) -> Authority:
    """An authority each for the API server and for etcd: etcd accepts any client certificate of its authority."""
    validity = Validity.of(datetime.now(UTC))
    servers, storage = (certificates.authority(f"numalign lab {name}", validity) for name in ("CA", "etcd CA"))
    plan.authority.write_text(servers.certificate())
    plan.certificate("etcd-ca").write_text(storage.certificate())
    issued: dict[str, KeyPair] = {
        "apiserver": servers.issue("kube-apiserver", [*dict.fromkeys((HOST, plan.host)), "localhost", *SERVICE_NAMES]),
        "etcd": storage.issue("etcd", [HOST]),
        "etcd-client": storage.issue_client("kube-apiserver"),
    }
    for name, pair in issued.items():
        keep(plan, name, pair)
    return servers


def keep(plan: ServerPlan, name: str, pair: KeyPair) -> None:
    plan.certificate(name).write_text(pair.certificate)
    privatefile.write(plan.private(name), pair.key)


def programs_of(plan: ServerPlan, found: ServerBinaries) -> tuple[ProgramSpec, ProgramSpec]:
    etcd = (str(found.etcd), *_etcd_flags(plan))
    server = (str(found.apiserver), *_api_flags(plan))
    return (
        ProgramSpec(name="etcd", command=etcd, log=plan.folder / "etcd.log", network=plan.network),
        ProgramSpec(
            name="kube-apiserver", command=server, log=plan.folder / "kube-apiserver.log", network=plan.network
        ),
    )


def is_ready(plan: ServerPlan, token: str) -> bool:
    # Verified: until the server listens, another program could have taken its port.
    context = ssl.create_default_context(cafile=str(plan.authority))
    connection = http.client.HTTPSConnection(plan.host, plan.port, context=context, timeout=30)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
    raise LabError(
        f"no free port on {HOST} between {PORTS.start} and {PORTS.stop}; stop the programs that listen there"
    )


def _etcd_flags(plan: ServerPlan) -> list[str]:
    at, among = f"https://{HOST}:{plan.etcd_port}", f"https://{HOST}:{plan.peer_port}"
    return [
        f"--data-dir={plan.folder / 'data'}",
        f"--listen-client-urls={at}",
        f"--advertise-client-urls={at}",
        f"--listen-peer-urls={among}",
        f"--initial-advertise-peer-urls={among}",
        f"--initial-cluster=default={among}",
        "--unsafe-no-fsync",
        # JSON over HTTP, which a web page could send.
        "--enable-grpc-gateway=false",
        # Members of a cluster call each other with the same certificates; this one is alone.
        *(flag for who in ("", "peer-") for flag in _etcd_tls(plan, who)),
    ]


def _etcd_tls(plan: ServerPlan, who: str) -> Iterator[str]:
    yield f"--{who}cert-file={plan.certificate('etcd')}"
    yield f"--{who}key-file={plan.private('etcd')}"
    yield f"--{who}trusted-ca-file={plan.certificate('etcd-ca')}"
    yield f"--{who}client-cert-auth"


def _api_flags(plan: ServerPlan) -> list[str]:
    return [
        f"--etcd-servers=https://{HOST}:{plan.etcd_port}",
        f"--etcd-cafile={plan.certificate('etcd-ca')}",
        f"--etcd-certfile={plan.certificate('etcd-client')}",
        f"--etcd-keyfile={plan.private('etcd-client')}",
        f"--secure-port={plan.port}",
        f"--bind-address={plan.bind}",
        f"--tls-cert-file={plan.certificate('apiserver')}",
        f"--tls-private-key-file={plan.private('apiserver')}",
        "--anonymous-auth=false",
        f"--token-auth-file={plan.folder / 'tokens.csv'}",
        f"--authorization-mode={plan.authorization}",
        "--service-account-issuer=https://loopback",
        f"--service-account-signing-key-file={plan.key}",
        f"--service-account-key-file={plan.key}",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
        *plan.flags,
    ]
