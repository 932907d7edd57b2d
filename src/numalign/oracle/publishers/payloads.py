"""Converts placement payloads from and to the form of recorded cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.api.nrt.placementcodec import Payload


def read(raw: Mapping[str, Any]) -> Payload:
    return Payload(
        containers=raw["containers"],
        zones=raw["numaNodes"],
        busiest=raw["busiestNode"],
        encoding=raw["vectorEncoding"],
        vectors={int(zone): vector for zone, vector in (raw.get("vectors") or {}).items()},
    )


def written(payload: Payload) -> dict[str, Any]:
    return {
        "containers": payload.containers,
        "numaNodes": payload.zones,
        "busiestNode": payload.busiest,
        "vectorEncoding": payload.encoding,
        "vectors": {str(zone): vector for zone, vector in payload.vectors.items()},
    }
