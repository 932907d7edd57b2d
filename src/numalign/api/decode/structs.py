"""The base of all structs that are read from or written to an API server.

`Wire` is frozen, camelCase on the wire, fills in defaults for absent fields, ignores unknown fields, and omits defaults
when written. Two hooks teach msgspec quantities. `decode` reads structs and reports errors."""

from typing import Annotated, Any, Final

import msgspec

from numalign.api.decode import quantity

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


# Objects hold no references back, so the cyclic garbage collector need not track them: decoding a list of pods spends
# most of its time there otherwise.
class Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Base of all structs that are read from or written to the API server."""


def decoded(kind: type, written: Any) -> quantity.Quantity:
    """msgspec's dec_hook. Its ValueError, if the text is bad, comes out as a ValidationError that knows the path."""
    if kind is quantity.Quantity:
        return quantity.parse(written)
    raise NotImplementedError(f"no reader for {kind.__name__}")


def encodable(thing: Any) -> str:
    """msgspec's enc_hook."""
    if isinstance(thing, quantity.Quantity):
        return str(thing)
    raise NotImplementedError(f"no writer for {type(thing).__name__}")


ENCODER: Final = msgspec.json.Encoder(enc_hook=encodable)


def encode(thing: Wire) -> bytes:
    return ENCODER.encode(thing)
