"""ProvisioningRequest and PodTemplate: who asks for room, and what the pods look like.

Group, version, fields and condition types are those of cluster-autoscaler's API (frontier spec 5), so that Kueue's
admission check works with it. `answers` reads and judges them, `provisioner` watches and writes."""

from __future__ import annotations

from typing import Final

from msgspec import field

from numalign.api.decode.structs import Int32, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import PodSpec
from numalign.api.objects.statusconditions import Condition
from numalign.kube import resources

GROUP: Final = "autoscaling.x-k8s.io"
CONSUMES: Final = f"{GROUP}/consume-provisioning-request"
"""The annotation by which a pod says which request of its namespace asked for its room."""
RESERVED: Final = (f".{GROUP}", ".kubernetes.io")
"""Endings of classes that cluster-autoscaler and projects of Kubernetes answer."""

ACCEPTED: Final = "Accepted"
PROVISIONED: Final = "Provisioned"
FAILED: Final = "Failed"
BOOKING_EXPIRED: Final = "BookingExpired"
CAPACITY_REVOKED: Final = "CapacityRevoked"

NO_RETRY: Final = "noRetry"
VALID_SECONDS: Final = "ValidUntilSeconds"


class TemplateReference(Wire, frozen=True):
    name: str = ""


class PodSet(Wire, frozen=True):
    pod_template_ref: TemplateReference = TemplateReference()
    count: Int32 = 0


class ProvisioningSpec(Wire, frozen=True):
    provisioning_class_name: str = ""
    pod_sets: tuple[PodSet, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)


class ProvisioningStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()


class ProvisioningRequest(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ProvisioningSpec = ProvisioningSpec()
    status: ProvisioningStatus = ProvisioningStatus()


class PodTemplateSpec(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodTemplate(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    template: PodTemplateSpec = PodTemplateSpec()


REQUESTS: Final = resources.of(f"{GROUP}/v1", "provisioningrequests", "ProvisioningRequest", ProvisioningRequest)
TEMPLATES: Final = resources.of("v1", "podtemplates", "PodTemplate", PodTemplate)
