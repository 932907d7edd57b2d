"""The one thing of dynamic resource allocation that concerns a scheduler which does not take part in it: extended
resources that a DeviceClass stands for.

`scheduler.claims` looks up whether what a pod asks for like any other resource is a class's in truth (kube-scheduler
spec 1.8). Everything else of a class is not read."""

from __future__ import annotations

from typing import Final

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""With a class's name after it, a resource that the class stands for without saying so."""


class DeviceClassSpec(Wire, frozen=True):
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
