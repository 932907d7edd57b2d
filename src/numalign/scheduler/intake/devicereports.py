"""Puts Koordinator's Device objects into the reports of nodes in direct mode.

`intake` passes every report and every Device object through it where the configuration says that Koordinator's objects
count. The engine, recordings and dumps then know nothing but reports. A Device object wins over what the agent itself
reports about such devices."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from numalign.api.attributes import devicetable, grammar
from numalign.api.errors import BadObject
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.api.objects.koordinatordevice import DeviceObject

TABLE: Final = "numalign.io/shared-devices"
MODE: Final = "numalign.io/mode"


class DeviceReports:
    def __init__(self) -> None:
        self._tables: dict[str, Attribute] = {}
        """By node, what its Device object says."""
        self._plain: dict[str, NodeResourceTopology] = {}
        """Reports of nodes with a Device object, as they were published."""

    def report(self, written: NodeResourceTopology) -> NodeResourceTopology:
        """The report with the devices of the node."""
        name = written.metadata.name
        table = self._tables.get(name)
        if table is None:
            return written
        self._plain[name] = written
        return _with(written, table)

    def report_gone(self, node: str) -> None:
        self._plain.pop(node, None)

    def device(self, device: DeviceObject, last: NodeResourceTopology | None) -> NodeResourceTopology | None:
        """The node's report anew; None: it stays as it is. `last`: the report in force. BadObject if the Device object
        cannot be used."""
        name = device.metadata.name
        try:
            table = Attribute(TABLE, grammar.tagged(devicetable.encode(devicetable.of_object(device))))
        except grammar.AttributeTextError as problem:
            raise BadObject("Device", name, "spec.devices", str(problem)) from None
        if self._tables.get(name) == table:
            return None
        plain = self._plain.get(name, last)
        self._tables[name] = table
        if plain is None:
            return None
        self._plain[name] = plain
        return _with(plain, table)

    def device_gone(self, node: str) -> NodeResourceTopology | None:
        """The node's report anew; None: it stays as it is."""
        self._tables.pop(node, None)
        return self._plain.pop(node, None)


def _with(written: NodeResourceTopology, table: Attribute) -> NodeResourceTopology:
    names = [each.name for each in written.attributes]
    if MODE not in names:
        return written
    return structs.replace(written, attributes=(*(each for each in written.attributes if each.name != TABLE), table))
