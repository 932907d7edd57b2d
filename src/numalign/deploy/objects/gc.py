"""The objects of the collector, which deletes the reports of deleted nodes: account, rights and Deployment."""

from __future__ import annotations

from typing import Final

from numalign.deploy import rights
from numalign.deploy.objects import common
from numalign.deploy.objects.common import Context, Object

NAME: Final = "gc"


def objects(context: Context) -> list[Object]:
    settings = context.values.gc
    if not settings.enabled:
        return []
    args = [f"--interval={settings.interval}", f"--grace={settings.grace}"]
    main = common.container(
        context,
        NAME,
        settings,
        args,
        command=["numalign", "agent", "gc"],
        livenessProbe=common.probe(settings.liveness_probe, "/healthz", "HTTP"),
    )
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(NAME, context.component(NAME), annotations=settings.annotations),
        "spec": {
            "replicas": 1,
            # Two would only do the same work twice.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": context.selector(NAME)},
            "template": common.pod_template(context, NAME, settings, main),
        },
    }
    return [
        *common.service_account(context, NAME, settings),
        *common.granted(context, NAME, settings, rights.COLLECTOR),
        *common.non_root_account(context, NAME, settings),
        *common.network_policy(context, NAME, settings.port),
        deployment,
    ]
