"""Reads kubeconfig files as kubectl does: merges several files and resolves a context to an `Access`.

The command line and every process outside a pod call `access`. The first file that has an entry wins, paths are
relative to their file, and inline data takes precedence over files. `auth-provider` is refused. Every error is a
BadObject that names the file and the field, and quotes nothing that may be a secret."""

import binascii
import logging
import os
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import decode, yamltext
from numalign.api.decode.structs import Wire
from numalign.kube.access import execplugin
from numalign.kube.clock import Clock, SystemClock
from numalign.kube.transport import auth, dial
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.tls import Certificate, Contexts, Trust

LOG: Final = logging.getLogger(__name__)
LARGEST: Final = 4 << 20


class Cluster(Wire, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""

    def __repr__(self) -> str:
        return f"Cluster({self.server})"


class User(Wire, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: execplugin.Plugin | None = None
    impersonate: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    auth_provider: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return "User(...)"


class Context(Wire, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(Wire, frozen=True):
    name: str = ""
    cluster: Cluster = Cluster()


class NamedUser(Wire, frozen=True):
    name: str = ""
    user: User = User()


class NamedContext(Wire, frozen=True):
    name: str = ""
    context: Context = Context()


class Kubeconfig(Wire, frozen=True):
    clusters: tuple[NamedCluster, ...] = ()
    users: tuple[NamedUser, ...] = ()
    contexts: tuple[NamedContext, ...] = ()
    current_context: str = msgspec.field(default="", name="current-context")


class Part(Struct, frozen=True):
    """A named part of a kubeconfig, and the file that holds it."""

    file: str
    field: str
    value: Any

    def bad(self, field: str, why: str) -> errors.BadObject:
        return errors.BadObject("Kubeconfig", self.file, f"{self.field}.{field}", why)

    def path(self, written: str) -> str:
        return os.path.join(os.path.dirname(self.file), os.path.expanduser(written)) if written else ""

    def decoded(self, field: str, written: str) -> bytes:
        try:
            return b64decode("".join(written.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.bad(field, "is not base64") from None


def read_files(files: Sequence[str]) -> list[tuple[str, Kubeconfig]]:
    """The files that exist, as kubectl reads them; a single file must exist."""
    there = [file for file in files if os.path.exists(file)] or files[:1]
    return [(file, _read(file)) for file in there]


def _read(file: str) -> Kubeconfig:
    raw = auth.file_bytes(file, file, "")
    if len(raw) > LARGEST:
        raise errors.BadObject("Kubeconfig", file, "", f"larger than {LARGEST >> 20} MiB; is this the right file?")
    try:
        documents = yamltext.documents(raw, file, repeated_keys=True)
    except yamltext.BadYAML as problem:
        # The parser's message may quote a secret; the position does not.
        raise errors.BadObject("Kubeconfig", file, problem.field, "is not YAML that kubectl reads") from None
    document = documents[0].value if documents else None
    if not isinstance(document, Mapping):
        raise errors.BadObject("Kubeconfig", file, "", "holds no object with clusters, users and contexts")
    try:
        return decode.decode(Kubeconfig, document)
    except errors.BadObject as problem:
        raise errors.BadObject("Kubeconfig", file, problem.field, problem.why) from None


def find_part(found: Sequence[tuple[str, Kubeconfig]], section: str, name: str, named_by: Part) -> Part:
    for file, config in found:
        for each in getattr(config, section):
            if each.name == name:
                return Part(file, f"{section}[{errors.clipped(name)}]", getattr(each, section.removesuffix("s")))
    raise errors.BadObject(
        "Kubeconfig", named_by.file, named_by.field, f"names {errors.echo(name)}, and {section} has no such entry"
    )


def _require_context(found: Sequence[tuple[str, Kubeconfig]], file: str, name: str) -> None:
    """Names the contexts that there are to a caller who asked for another one."""
    known = [each.name for _, config in found for each in config.contexts]
    if name not in known:
        there = ", ".join(map(errors.clipped, known[:MOST_NAMED])) or "none"
        raise errors.BadObject("Kubeconfig", file, "--context", f"no context {errors.echo(name)}; there are: {there}")


MOST_NAMED: Final = 10
"""Contexts that an error names."""
VARIABLE: Final = "KUBECONFIG"


def default_files(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    named = tuple(filter(None, environment.get(VARIABLE, "").split(os.pathsep)))
    return named or (str(Path(environment.get("HOME", "~"), ".kube", "config").expanduser()),)


def access(
    files: Sequence[str] = (),
    context: str = "",
    clock: Clock | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Access:
    """Access by the named context, or the current one; without files, those that kubectl would use."""
    configs = read_files(files or default_files(environment))
    first = configs[0][0]
    chosen = context or _current(configs)
    if not chosen:
        raise errors.BadObject("Kubeconfig", first, "current-context", "is not set; name a context")
    if context:
        _require_context(configs, first, context)
    found = find_part(configs, "contexts", chosen, Part(first, "current-context", chosen))
    cluster = find_part(configs, "clusters", found.value.cluster, found)
    user = find_part(configs, "users", found.value.user, found) if found.value.user else Part(first, "users", User())
    return _access(cluster, user, found.value.namespace or "default", (clock or SystemClock(), environment))


def current_context(files: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> str:
    """The context that `access` chooses where none is named; empty: none is set."""
    return _current(read_files(files or default_files(environment)))


def _current(configs: Sequence[tuple[str, Kubeconfig]]) -> str:
    return next((config.current_context for _, config in configs if config.current_context), "")


def _access(cluster: Part, user: Part, namespace: str, around: tuple[Clock, Mapping[str, str]]) -> Access:
    clock, environment = around
    address = _server(cluster, environment)
    _warn(cluster, user, address)
    return Access(
        server=address,
        login=Login(_source(user, cluster, clock), clock),
        contexts=_contexts(cluster) if address.secure else None,
        namespace=namespace,
    )


def _server(cluster: Part, environment: Mapping[str, str]) -> dial.Server:
    value: Cluster = cluster.value
    try:
        address = dial.parse_server(value.server, value.tls_server_name)
    except ValueError as problem:
        raise cluster.bad("server", f"{errors.echo(value.server)} {problem}") from None
    try:
        way = (
            dial.parse_proxy(value.proxy_url)
            if value.proxy_url
            else dial.proxy_from_environment(environment, value.server)
        )
    except ValueError as problem:
        raise cluster.bad("proxy-url", str(problem)) from None
    return msgspec.structs.replace(address, proxy=way)


def _warn(cluster: Part, user: Part, address: dial.Server) -> None:
    """kubectl accepts both without a word; the log names them."""
    value: User = user.value
    secret = value.token or value.token_file or value.password or value.exec
    if cluster.value.insecure_skip_tls_verify:
        LOG.warning("%s, %s: the client does not verify the server's certificate", cluster.file, cluster.field)
    elif secret and not address.secure and address.host not in dial.OURSELVES:
        LOG.warning("%s, %s: credentials are sent to %s without TLS", cluster.file, cluster.field, address.host)


def _contexts(cluster: Part) -> Contexts:
    value: Cluster = cluster.value
    data = cluster.decoded("certificate-authority-data", value.certificate_authority_data)
    file = "" if data else cluster.path(value.certificate_authority)
    if value.insecure_skip_tls_verify and (data or file):
        raise cluster.bad("insecure-skip-tls-verify", "contradicts the certificate authority beside it; keep one")
    made = Contexts(Trust(file, data, value.insecure_skip_tls_verify), cluster.file)
    made.context(None)
    return made


def _source(user: Part, cluster: Part, clock: Clock) -> auth.Source:
    value: User = user.value
    if value.auth_provider is not None:
        raise user.bad("auth-provider", "is not supported, as in kubectl since 1.26; use exec")
    if value.exec is not None:
        return execplugin.source(_asked(user, cluster), clock)

    def read() -> Identity:
        return _identity(user)

    identity = read()
    in_files = value.token_file or value.client_certificate or value.client_key
    return auth.from_files(read) if in_files else auth.unchanging(identity)


def _identity(user: Part) -> Identity:
    value: User = user.value
    headers: auth.Headers = ()
    if value.token_file:
        raw = auth.file_bytes(user.path(value.token_file), user.file, f"{user.field}.tokenFile")
        headers = auth.bearer(auth.token_text(raw, user.file, f"{user.field}.tokenFile"))
    elif value.token:
        headers = auth.bearer(auth.token_text(value.token, user.file, f"{user.field}.token"))
    elif value.username:
        headers = auth.basic(value.username, value.password)
    return Identity(headers + _impersonated(user), _certificate(user))


def _impersonated(user: Part) -> auth.Headers:
    value: User = user.value
    if not value.impersonate and (value.as_uid or value.as_groups or value.as_user_extra):
        raise user.bad("as", "is missing beside as-uid, as-groups or as-user-extra: name the user to act as")
    headers = auth.impersonating(value.impersonate, value.as_uid, value.as_groups, value.as_user_extra)
    if not all(text.isprintable() and text.isascii() for _, text in headers):
        raise user.bad("as", "is not valid in a header: expected printable ASCII")
    return headers


def _certificate(user: Part) -> Certificate | None:
    value: User = user.value
    chain = _pem(user, "client-certificate", value.client_certificate, value.client_certificate_data)
    key = _pem(user, "client-key", value.client_key, value.client_key_data)
    if bool(chain) != bool(key):
        present, absent = ("client-certificate", "client-key") if chain else ("client-key", "client-certificate")
        raise user.bad(absent, f"is missing beside {present}")
    return Certificate(chain, key) if chain else None


def _pem(user: Part, field: str, file: str, data: str) -> bytes:
    if data:
        return user.decoded(f"{field}-data", data)
    return auth.file_bytes(user.path(file), user.file, f"{user.field}.{field}") if file else b""


def _asked(user: Part, cluster: Part) -> execplugin.PluginCall:
    plugin: execplugin.Plugin = user.value.exec
    # A command with a slash is relative to the kubeconfig's folder; a bare one is searched in PATH.
    command = user.path(plugin.command) if os.sep in plugin.command else plugin.command
    value: Cluster = cluster.value
    known = {
        "server": value.server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": value.insecure_skip_tls_verify,
        "certificate-authority-data": value.certificate_authority_data,
        "proxy-url": value.proxy_url,
    }
    given = {name: what for name, what in known.items() if what}
    return execplugin.PluginCall(msgspec.structs.replace(plugin, command=command), user.file, given)
