"""What a real API server and a real kubectl 1.37.1 sent, recorded once."""

import gzip
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")


def load(name: str) -> Any:
    return json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


def without_nulls(thing: Any) -> Any:
    """Nulls mean absence to every client, and some of the real server's structs write them."""
    if isinstance(thing, dict):
        return {key: without_nulls(value) for key, value in thing.items() if value is not None}
    return [without_nulls(value) for value in thing] if isinstance(thing, list) else thing
