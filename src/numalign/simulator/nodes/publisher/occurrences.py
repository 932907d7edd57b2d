"""What happens on a node that publishers of its topology may react to."""

from typing import Literal

Occurrence = Literal["allocated", "container", "released", "devices"]
"""Managers were asked for something; a pinned container started or ended; a pod gave all it held back; a device became
well or unwell."""
