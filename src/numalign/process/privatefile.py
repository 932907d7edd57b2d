"""Writes files that only their owner can read: keys, tokens, kubeconfigs and dumps of a cluster.

Embedded clusters, labs and the command line call `write`. The file appears at once, complete and with its mode; an
earlier file or link of this name is replaced, so that neither its mode nor its target counts."""

import contextlib
import os
import secrets
from pathlib import Path


def write(path: Path, content: str | bytes) -> Path:
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    return path
