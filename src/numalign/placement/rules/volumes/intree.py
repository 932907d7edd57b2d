"""Translates volumes of in-tree cloud plugins into the CSI drivers that serve them.

`nodevolumelimits` counts them under the driver's name, `volumebinding` asks for their topology. Azure Files and
vSphere volumes are not translated: kube-scheduler does not count them (kube-scheduler spec 1.15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from numalign.api.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Volume
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeSpec

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
SUCCESSORS: Final = {"failure-domain.beta.kubernetes.io/zone": ZONE, "failure-domain.beta.kubernetes.io/region": REGION}
BETWEEN_ZONES: Final = "__"
"""In a volume's label, where it is in several zones."""
OLD_ZONE, OLD_REGION = SUCCESSORS
AWS_PREFIX: Final = "aws://"
UNSPECIFIED: Final = "UNSPECIFIED"
NO_LABELS: Final[Mapping[str, str]] = {}

Source = Volume | PersistentVolumeSpec


class Plugin(Struct, frozen=True):
    name: str
    driver: str
    topology_key: str = ""
    """The node label that the driver uses for zones, where it translates them."""


AWS: Final = Plugin("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
GCE: Final = Plugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
CINDER: Final = Plugin("kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone")
AZURE: Final = Plugin("kubernetes.io/azure-disk", "disk.csi.azure.com")
PORTWORX: Final = Plugin("kubernetes.io/portworx-volume", "pxd.portworx.com")
BY_NAME: Final = {plugin.name: plugin for plugin in (AWS, GCE, CINDER, AZURE, PORTWORX)}
UNCOUNTED: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""Plugins with a driver of their own that are not looked at as such."""


def plugin_of(source: Source) -> Plugin | None:
    if source.aws_elastic_block_store:
        return AWS
    if source.gce_persistent_disk:
        return GCE
    if source.cinder:
        return CINDER
    if source.azure_disk:
        return AZURE
    return PORTWORX if source.portworx_volume else None


def is_built_in(volume: Volume) -> bool:
    """Whether a pod brings a volume of a built-in plugin that has a driver, counted or not."""
    return bool(plugin_of(volume) or volume.azure_file or volume.vsphere_volume)


def handle(source: Source, labels: Mapping[str, str] = NO_LABELS) -> str | None:
    """The driver's name for the volume; None if it is not known."""
    if source.aws_elastic_block_store:
        return _aws_handle(source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk:
        zones = labels.get(OLD_ZONE) or labels.get(ZONE) or ""
        return _gce_handle(source.gce_persistent_disk.pd_name, zones.split(BETWEEN_ZONES))
    if source.cinder:
        return source.cinder.volume_id
    if source.azure_disk:
        return source.azure_disk.disk_uri
    return source.portworx_volume.volume_id if source.portworx_volume else None


def affinity(volume: PersistentVolume, plugin: Plugin) -> NodeSelector | None:
    """The node affinity of the volume, with the driver's labels."""
    written = volume.spec.node_affinity.required
    if not plugin.topology_key:
        return written
    zone, region = _labels_used(volume)
    if any(each.values for each in _expressions(written) if each.key == zone):
        written = _renamed(written, {zone: plugin.topology_key})
    elif zone in volume.metadata.labels:
        written = _narrowed(written, plugin.topology_key, volume.metadata.labels[zone].split(BETWEEN_ZONES))
    return _renamed(written, {OLD_REGION: REGION}) if region == OLD_REGION else written


def _aws_handle(written: str) -> str | None:
    if not written.startswith(AWS_PREFIX):
        return written
    _, _, path = written.removeprefix(AWS_PREFIX).partition("/")
    name = path.strip("/")
    return name if name.startswith("vol-") and "/" not in name else None


def _gce_handle(disk: str, zones: list[str]) -> str | None:
    if len(zones) == 1:
        return f"projects/{UNSPECIFIED}/zones/{zones[0] or UNSPECIFIED}/disks/{disk}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) > 1 or any(zone.count("-") != 2 for zone in zones):
        return None
    return f"projects/{UNSPECIFIED}/regions/{regions.pop()}/disks/{disk}"


def _labels_used(volume: PersistentVolume) -> tuple[str, str]:
    keys = {each.key for each in _expressions(volume.spec.node_affinity.required)}
    for where in (keys, volume.metadata.labels):
        if ZONE in where:
            return ZONE, REGION
        if OLD_ZONE in where:
            return OLD_ZONE, OLD_REGION
    return ZONE, REGION


def _expressions(selector: NodeSelector | None) -> Iterator[NodeSelectorRequirement]:
    for term in selector.node_selector_terms if selector else ():
        yield from term.match_expressions


def _renamed(selector: NodeSelector | None, keys: Mapping[str, str]) -> NodeSelector | None:
    def renamed(term: NodeSelectorTerm) -> NodeSelectorTerm:
        new = (msgspec.structs.replace(each, key=keys.get(each.key, each.key)) for each in term.match_expressions)
        return msgspec.structs.replace(term, match_expressions=tuple(new))

    return selector and _each_term(selector, renamed)


def _narrowed(selector: NodeSelector | None, key: str, zones: list[str]) -> NodeSelector | None:
    values = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not values:
        return selector
    added = NodeSelectorRequirement(key=key, operator="In", values=values)
    start = selector if selector and selector.node_selector_terms else NodeSelector((NodeSelectorTerm(),))
    return _each_term(
        start, lambda term: msgspec.structs.replace(term, match_expressions=(*term.match_expressions, added))
    )


def _each_term(selector: NodeSelector, change: Callable[[NodeSelectorTerm], NodeSelectorTerm]) -> NodeSelector:
    return NodeSelector(tuple(map(change, selector.node_selector_terms)))
