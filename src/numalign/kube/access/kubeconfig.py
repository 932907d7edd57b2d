"""Access as a kubeconfig describes it: the file that kubectl uses, or several merged.

The command line and every process outside a pod call `access`. Whatever is wrong is a BadObject that names the file
and the field. As in kubectl, paths are relative to the file they stand in, and inline data goes before files. Not
supported, and refused: `auth-provider`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from numalign.api import errors
from numalign.kube.access import auth, execplugin, kubeconfigfile
from numalign.kube.access.auth import Access, Identity, Login
from numalign.kube.access.kubeconfigfile import Cluster, Part, User
from numalign.kube.clock import Clock, SystemClock
from numalign.kube.transport import server
from numalign.kube.transport.tls import Certificate, Contexts, Trust

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
    configs = kubeconfigfile.configs(files or default_files(environment))
    first = configs[0][0]
    chosen = context or next((config.current_context for _, config in configs if config.current_context), "")
    if not chosen:
        raise errors.BadObject("Kubeconfig", first, "current-context", "is not set; name a context")
    found = kubeconfigfile.part(configs, "contexts", chosen, Part(first, "current-context", chosen))
    cluster = kubeconfigfile.part(configs, "clusters", found.value.cluster, found)
    user = (
        kubeconfigfile.part(configs, "users", found.value.user, found)
        if found.value.user
        else Part(first, "users", User())
    )
    return _access(cluster, user, found.value.namespace or "default", (clock or SystemClock(), environment))


def _access(cluster: Part, user: Part, namespace: str, around: tuple[Clock, Mapping[str, str]]) -> Access:
    clock, environment = around
    address = _server(cluster, environment)
    return Access(
        server=address,
        login=Login(_source(user, cluster, clock), clock),
        contexts=_contexts(cluster) if address.secure else None,
        namespace=namespace,
    )


def _server(cluster: Part, environment: Mapping[str, str]) -> server.Server:
    value: Cluster = cluster.value
    try:
        address = server.server(value.server, value.tls_server_name)
    except ValueError as problem:
        raise cluster.bad("server", f"{errors.echo(value.server)} {problem}") from None
    try:
        way = server.proxy(value.proxy_url) if value.proxy_url else server.proxy_from(environment, value.server)
    except ValueError as problem:
        raise cluster.bad("proxy-url", str(problem)) from None
    return msgspec.structs.replace(address, proxy=way)


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


def _asked(user: Part, cluster: Part) -> execplugin.Asked:
    plugin: execplugin.Plugin = user.value.exec
    # A command with a slash is relative to the kubeconfig's folder; a bare one is searched in PATH.
    command = user.path(plugin.command) if os.sep in plugin.command else plugin.command
    value: Cluster = cluster.value
    told = {
        "server": value.server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": value.insecure_skip_tls_verify,
        "certificate-authority-data": value.certificate_authority_data,
        "proxy-url": value.proxy_url,
    }
    given = {name: what for name, what in told.items() if what}
    return execplugin.Asked(msgspec.structs.replace(plugin, command=command), user.file, given)
