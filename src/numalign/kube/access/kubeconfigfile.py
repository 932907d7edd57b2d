"""A kubeconfig as it stands in its files: read, checked, merged, and each part with the place it came from.

`kubeconfig` makes an access of the parts. As in kubectl, the first file that has an entry wins. Whatever cannot be
read is a BadObject that names the file and the field, and quotes nothing that may be a secret."""

import binascii
import os
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.kube.access import auth, execplugin

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


def configs(files: Sequence[str]) -> list[tuple[str, Kubeconfig]]:
    """The files that exist, as kubectl reads them; a single file must exist."""
    there = [file for file in files if os.path.exists(file)] or files[:1]
    return [(file, _read(file)) for file in there]


def _read(file: str) -> Kubeconfig:
    raw = auth.file_bytes(file, file, "")
    if len(raw) > LARGEST:
        raise errors.BadObject("Kubeconfig", file, "", f"larger than {LARGEST >> 20} MiB; is this the right file?")
    try:
        document = msgspec.yaml.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # The parser's message quotes the line, which may be a secret.
        raise errors.BadObject("Kubeconfig", file, "", "is not YAML") from None
    if not isinstance(document, Mapping):
        raise errors.BadObject("Kubeconfig", file, "", "holds no object with clusters, users and contexts")
    try:
        return decode.decode(Kubeconfig, document)
    except errors.BadObject as problem:
        raise errors.BadObject("Kubeconfig", file, problem.field, problem.why) from None


def part(found: Sequence[tuple[str, Kubeconfig]], section: str, name: str, named_by: Part) -> Part:
    for file, config in found:
        for each in getattr(config, section):
            if each.name == name:
                return Part(file, f"{section}[{errors.clipped(name)}]", getattr(each, section.removesuffix("s")))
    raise errors.BadObject(
        "Kubeconfig", named_by.file, named_by.field, f"names {errors.echo(name)}, and {section} has no such entry"
    )
