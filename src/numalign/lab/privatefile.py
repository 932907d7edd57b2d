"""Writes files with secrets: tokens, keys and kubeconfigs of a lab, which only their owner can read.

Every module of the lab that writes one calls `write`."""

import os
from pathlib import Path


def write(path: Path, content: str | bytes) -> Path:
    """Replaces a file or link of this name, so that neither its mode nor its target counts."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path
