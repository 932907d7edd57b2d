"""Catalogues of machine types: what a machine is, how its kubelet is configured, what it costs, how many there are.

The command line parses YAML or JSON and calls `read`; docs/use/plan.md describes the format. A catalogue that
contradicts itself is a BadObject that names the field. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from numalign.api.decode import fields, quantity
from numalign.api.decode.fields import Field
from numalign.api.errors import BadObject, echo
from numalign.kubelet import configuration, start, versions
from numalign.kubelet.machine import machinefile
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.start import Kubelet

API_VERSION: Final = "numalign.io/v1alpha1"
KIND: Final = "MachineCatalogue"
KEYS: Final = ("apiVersion", "kind", "currency", "machines")
TYPE_KEYS: Final = ("name", "machine", "kubelet", "kubeletVersion", "price", "count", "labels")
MOST_TYPES: Final = 200
MOST_MACHINES: Final = 100_000
MOST_PRICE: Final = 10**9


class MachineType(Struct, frozen=True, kw_only=True):
    """One line of a catalogue."""

    name: str
    kubelet: Kubelet
    price: Decimal | None = None
    """Of one machine for as long as the catalogue means, such as an hour."""
    count: int | None = None
    """How many there are, or can be had; None: it does not say."""
    labels: Mapping[str, str] = {}


class Catalogue(Struct, frozen=True, kw_only=True):
    types: tuple[MachineType, ...]
    currency: str = ""

    @property
    def is_priced(self) -> bool:
        return self.types[0].price is not None


def read(value: object, source: str, machine: Callable[[str], Machine]) -> Catalogue:
    """`machine`: the machine of a name, or of a file that is named."""
    file = fields.root(value, KIND, source)
    fields.of_kind(file, API_VERSION, KIND)
    fields.only(file, KEYS)
    types = tuple(_types(file.at("machines"), machine))
    currency = file.at("currency")
    return Catalogue(types=types, currency=fields.text(currency) if currency.given else "")


def of_names(names: tuple[str, ...], kubelet: Callable[[str], Kubelet]) -> Catalogue:
    """A catalogue without prices of machines that are named."""
    return Catalogue(types=tuple(MachineType(name=name, kubelet=kubelet(name)) for name in dict.fromkeys(names)))


def _types(listed: Field, machine: Callable[[str], Machine]) -> Iterator[MachineType]:
    seen: dict[str, str] = {}
    priced: dict[bool, str] = {}
    for number, entry in enumerate(fields.items(listed)):
        if number == MOST_TYPES:
            raise entry.bad(f"one machine type too many; a catalogue has at most {MOST_TYPES}")
        found = _type(entry, machine)
        if found.name in seen:
            raise entry.at("name").bad(f"{echo(found.name)} is also the name of {seen[found.name]}; rename one of them")
        seen[found.name] = entry.path
        priced[found.price is not None] = found.name
        if len(priced) > 1:
            why = f"{priced[True]} has a price and {priced[False]} has none; give all types a price, or none"
            raise entry.at("price").bad(why)
        yield found
    if not seen:
        raise listed.bad("a catalogue has one machine type or more; list them")


def _type(entry: Field, machine: Callable[[str], Machine]) -> MachineType:
    fields.only(entry, TYPE_KEYS)
    name = fields.text(entry.at("name"))
    if not name:
        raise entry.at("name").bad("is empty; write a name")
    on = _machine(entry.at("machine"), name, machine)
    return MachineType(
        name=name,
        kubelet=_kubelet(entry, on),
        price=_price(entry.at("price")),
        count=fields.integer(entry.at("count"), 0, MOST_MACHINES) if entry.at("count").given else None,
        labels={key: fields.text(label) for key, label in fields.entries(entry.at("labels"))},
    )


def _machine(field: Field, name: str, machine: Callable[[str], Machine]) -> Machine:
    """Named, or described in the catalogue as in a machine file."""
    try:
        if isinstance(field.value, Mapping):
            return machinefile.read(field.value, name)
        return machine(fields.text(field))
    except BadObject as problem:
        if problem.kind == KIND:
            raise
        inner = problem.field if isinstance(field.value, Mapping) else ""
        raise BadObject(KIND, field.source, field.path_to(inner), problem.why) from None


def _kubelet(entry: Field, machine: Machine) -> Kubelet:
    written, version = entry.at("kubelet"), entry.at("kubeletVersion")
    given: dict[str, Any] = fields.named(written) if written.given else {}
    minor = versions.parse(fields.text(version)) if version.given else versions.NEWEST
    if minor is None:
        raise version.bad(f"{echo(version.value)} is not a Kubernetes version; write one like {versions.NEWEST}")
    try:
        read = configuration.read({**given, **configuration.HEAD}, entry.source, machine, minor)
        return start.start(machine, read)
    except BadObject as problem:
        raise BadObject(KIND, entry.source, written.path_to(problem.field), problem.why) from None
    except (StartRefusal, Undecided) as refusal:
        raise written.bad(f"the kubelet would not start: {refusal}") from None


def _price(field: Field) -> Decimal | None:
    if not field.given:
        return None
    if not isinstance(field.value, str | int | float) or isinstance(field.value, bool):
        raise field.bad(f"{echo(field.value)} is not a price; write a number")
    try:
        found = Decimal(str(field.value))
    except ArithmeticError:
        raise field.bad(f"{echo(field.value)} is not a price; write a number") from None
    if not found.is_finite() or not 0 <= found <= MOST_PRICE:
        raise field.bad(f"{echo(field.value)} is not between 0 and {quantity.of(MOST_PRICE)}")
    return found
