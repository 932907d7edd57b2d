"""Builds numalign-devkit from the one source tree: its wheel includes what the product's wheel excludes.

hatchling calls these hooks. The list of excluded paths in the product's pyproject.toml is the only one. An editable
install includes no files: the folder `src` on the path brings both distributions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


class SameVersion(MetadataHookInterface):
    """Gives the kit the version of numalign and makes it require exactly that version, whose internals it uses.

    `tls`: the lab signs the tokens of service accounts."""

    def update(self, metadata: dict[str, Any]) -> None:
        (version,) = VERSION.findall(Path(self.root, "../src/numalign/__init__.py").read_text())
        metadata["version"] = version
        metadata["dependencies"] = [f"numalign[tls]=={version}"]


class LeftOut(BuildHookInterface[Any]):
    """Includes the paths that the product excludes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        product = tomllib.loads(Path(self.root, "../pyproject.toml").read_text())
        for path in product["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]:
            build_data["force_include"][f"..{path}"] = path.removeprefix("/src/")
