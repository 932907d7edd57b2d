"""Parts of a configuration that are not about pods: who leads, and how to reach the API server.

Read by `configuration`. Defaults and limits are the stock scheduler's (kube-scheduler spec 6.1), with two exceptions
that a scheduler beside the stock one needs: a lease of its own, and calls that nobody slows down unless asked to."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.schedulerconfig import durations

LEASES: Final = "leases"
JITTER: Final = 1.2
DEFAULT_BURST: Final = 100
JSON: Final = "application/json"


class LeaderElection(Struct, frozen=True, kw_only=True, rename="camel"):
    """In seconds."""

    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_name: str
    resource_namespace: str = "kube-system"


class ClientConnection(Struct, frozen=True, kw_only=True, rename="camel"):
    kubeconfig: str = ""
    """Empty: the credentials that a pod has."""
    qps: float | None = None
    """Calls a second; None: as many as there are."""
    burst: int = DEFAULT_BURST


def leader_election(field: Field, default_name: str) -> LeaderElection:
    if not field.given:
        return LeaderElection(resource_name=default_name)
    known = ("leaderElect", "leaseDuration", "renewDeadline", "retryPeriod")
    fields.only(field, (*known, "resourceLock", "resourceName", "resourceNamespace"))
    elect = field.at("leaderElect")
    read = LeaderElection(
        leader_elect=fields.boolean(elect) if elect.given else True,
        lease_duration=durations.read(field.at("leaseDuration"), 15.0),
        renew_deadline=durations.read(field.at("renewDeadline"), 10.0),
        retry_period=durations.read(field.at("retryPeriod"), 2.0),
        resource_name=_text(field.at("resourceName")) or default_name,
        resource_namespace=_text(field.at("resourceNamespace")) or "kube-system",
    )
    if read.leader_elect:
        _require_sound(field, read)
    return read


def _require_sound(field: Field, read: LeaderElection) -> None:
    lock = field.at("resourceLock")
    if (_text(lock) or LEASES) != LEASES:
        raise lock.bad(f"{errors.echo(lock.value)} is not {LEASES}, the only one there is")
    for key, seconds in (("leaseDuration", read.lease_duration), ("renewDeadline", read.renew_deadline)):
        if seconds <= 0:
            raise field.at(key).bad(f"{errors.echo(field.at(key).value)} is not more than nothing")
    if read.retry_period <= 0:
        raise field.at("retryPeriod").bad(f"{errors.echo(field.at('retryPeriod').value)} is not more than nothing")
    if read.lease_duration <= read.renew_deadline:
        raise field.at("leaseDuration").bad(f"not longer than renewDeadline ({durations.text(read.renew_deadline)})")
    if read.renew_deadline <= JITTER * read.retry_period:
        least = f"{JITTER} times retryPeriod ({durations.text(read.retry_period)})"
        raise field.at("renewDeadline").bad(f"not longer than {least}")


def client_connection(field: Field, warnings: list[str]) -> ClientConnection:
    if not field.given:
        return ClientConnection()
    fields.only(field, ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"))
    for key in ("acceptContentTypes", "contentType"):
        if _text(field.at(key)) not in ("", JSON):
            warnings.append(f"{field.at(key).path}: objects travel as {JSON}, whatever is asked for")
    burst = field.at("burst")
    return ClientConnection(
        kubeconfig=_text(field.at("kubeconfig")),
        qps=_rate(field.at("qps")),
        burst=(fields.integer(burst, 0, fields.INT32_MAX) if burst.given else 0) or DEFAULT_BURST,
    )


def _rate(field: Field) -> float | None:
    """Nothing is no limit here; less than nothing is so for the stock scheduler too."""
    if not field.given:
        return None
    if not isinstance(field.value, int | float) or isinstance(field.value, bool) or not abs(field.value) < 1e9:
        raise field.bad(f"{errors.echo(field.value)} is not a number of calls a second")
    return float(field.value) if field.value > 0 else None


def _text(field: Field) -> str:
    return fields.text(field) if field.given else ""
