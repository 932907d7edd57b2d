"""Writes the part of kube-scheduler's configuration that makes it ask the extender.

`numalign extender config` prints it, alone or merged into an existing KubeSchedulerConfiguration. The extender charges
a pod to the node that it chooses, so its choice has to prevail. Alone, it answers with that node only, and
kube-scheduler scores nothing. Beside other extenders, which may refuse the node, it answers with all nodes that admit
the pod, and its weight prevails over all scores of kube-scheduler (kube-scheduler spec 5.5 and 5.11). Pure."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.errors import BadObject
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.api.schedulerconfig import configuration, pluginargs

DECISIVE: Final = 130
"""kube-scheduler counts score × weight × 10. One point less than the highest score must cost more than all of its own
scores together, which are about 1,200 with its default weights."""
EXTENDERS: Final = "extenders"
Document = dict[str, Any]


class ExtenderOptions(Struct, frozen=True, kw_only=True):
    url: str
    authority: str = ""
    """A file on the host of kube-scheduler, as are the next two."""
    certificate: str = ""
    key: str = ""
    server_name: str = ""
    bind: bool = True
    ignorable: bool = False
    timeout: str = "2s"
    weight: int = DECISIVE
    resources: tuple[str, ...] = ()
    """Only pods that ask for one of these are asked about; empty: all pods."""


def stanza(options: ExtenderOptions, *, beside_others: bool = False) -> Document:
    """One entry of `extenders`; `beside_others`: there are more."""
    scored = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": options.weight}
    tls = {
        "caFile": options.authority,
        "certFile": options.certificate,
        "keyFile": options.key,
        "serverName": options.server_name,
    }
    return {
        "urlPrefix": options.url.rstrip("/"),
        **(scored if beside_others else {"filterVerb": "choose"}),
        "preemptVerb": "preempt",
        **({"bindVerb": "bind"} if options.bind else {}),
        "enableHTTPS": options.url.startswith("https://"),
        "tlsConfig": {name: value for name, value in tls.items() if value},
        "httpTimeout": options.timeout,
        "nodeCacheCapable": True,
        "ignorable": options.ignorable,
        **({"managedResources": [{"name": each} for each in options.resources]} if options.resources else {}),
    }


def defaults() -> Document:
    """The configuration of the extender itself without a file: pods of kube-scheduler's default profile."""
    profiles = [{"schedulerName": DEFAULT_SCHEDULER}]
    return {"apiVersion": pluginargs.API_VERSION, "kind": configuration.KIND, "profiles": profiles}


def alone(options: ExtenderOptions) -> Document:
    return {"apiVersion": pluginargs.API_VERSION, "kind": configuration.KIND, EXTENDERS: [stanza(options)]}


def merged(document: object, source: str, options: ExtenderOptions) -> Document:
    """The configuration with this extender, in place of an older entry of the same URL. BadObject where the file is no
    configuration of kube-scheduler, or where another extender binds pods."""
    config = fields.root(document, configuration.KIND, source)
    fields.of_kind(config, pluginargs.API_VERSION, configuration.KIND)
    others: list[object] = []
    for item in fields.items(config.at(EXTENDERS)) if config.at(EXTENDERS).given else ():
        if fields.text(item.at("urlPrefix")).rstrip("/") == options.url.rstrip("/"):
            continue
        if options.bind and item.at("bindVerb").given:
            raise item.at("bindVerb").bad("kube-scheduler allows one extender to bind; use --no-bind for this one")
        for managed in fields.items(item.at("managedResources")) if item.at("managedResources").given else ():
            if fields.text(managed.at("name")) in options.resources:
                raise managed.at("name").bad("is managed by this extender, too; kube-scheduler allows one of them")
        others.append(item.value)
    return {**fields.named(config), EXTENDERS: [*others, stanza(options, beside_others=bool(others))]}


def checked(options: ExtenderOptions) -> ExtenderOptions:
    """The options, or BadObject where kube-scheduler would not verify the extender."""
    if not options.url.startswith(("https://", "http://")):
        raise BadObject("extender config", options.url, "--url", "is not a URL; give https://HOST:PORT")
    if options.url.startswith("https://") and not options.authority:
        why = "is missing: kube-scheduler does not verify the extender's certificate without it"
        raise BadObject("extender config", options.url, "--certificate-authority", why)
    if bool(options.certificate) != bool(options.key):
        raise BadObject("extender config", options.url, "--client-certificate", "and --client-key go together")
    if not (fields.seconds(options.timeout) or 0) > 0:
        why = f"{errors.echo(options.timeout)} is not a length of time; write one like 2s or 500ms"
        raise BadObject("extender config", options.url, "--timeout", why)
    for name in options.resources:
        if not resourcenames.is_extended(name) or options.resources.count(name) > 1:
            why = f"{errors.echo(name)} is not an extended resource, like example.com/gpu, or is given twice"
            raise BadObject("extender config", options.url, "--managed-resource", why)
    return options
