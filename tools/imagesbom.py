"""Reads an image archive and lists what is in it as CycloneDX: Debian packages and Python distributions.

`tools.image` writes the list beside the archive. It says what is really in the layers, not what was asked for."""

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any, Final

STATUS: Final = "var/lib/dpkg/status"
RELEASE: Final = "usr/lib/os-release"
METADATA: Final = ".dist-info/METADATA"
WANTED: Final = (STATUS, RELEASE)
Component = dict[str, Any]


def bill(archive: Path, name: str, version: str) -> dict[str, Any]:
    files = dict(_texts(archive))
    release = dict(line.split("=", 1) for line in files.get(RELEASE, "").splitlines() if "=" in line)
    distribution = "-".join(release.get(key, "").strip('"') for key in ("ID", "VERSION_ID"))
    components = [_python(text) for path, text in sorted(files.items()) if path.endswith(METADATA)]
    paragraphs = files.get(STATUS, "").strip().split("\n\n")
    components += [_debian(each, distribution) for each in paragraphs if each]
    image = {"type": "container", "bom-ref": "image", "name": name.rpartition(":")[0], "version": version}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": image},
        "components": sorted(components, key=lambda each: str(each["bom-ref"])),
    }


def layers(archive: Path) -> Iterator[tarfile.TarFile]:
    """The layers of the image, from the base up."""
    with tarfile.open(archive) as opened:

        def blob(digest: str) -> bytes:
            found = opened.extractfile(f"blobs/{digest.replace(':', '/')}")
            return found.read() if found is not None else b""

        index = json.loads(opened.extractfile("index.json").read())  # type: ignore[union-attr]
        manifest = json.loads(blob(index["manifests"][0]["digest"]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=gzip.GzipFile(fileobj=io.BytesIO(blob(layer["digest"])))) as files:
                yield files


def _texts(archive: Path) -> Iterator[tuple[str, str]]:
    """The files that describe packages. A later layer's file replaces an earlier one's."""
    for layer in layers(archive):
        for member in layer:
            path = member.name.removeprefix("./")
            if member.isreg() and (path in WANTED or path.endswith(METADATA)):
                contents = layer.extractfile(member)
                yield path, contents.read().decode(errors="replace") if contents is not None else ""


def _python(metadata: str) -> Component:
    fields = Parser().parsestr(metadata, headersonly=True)
    name, version = fields["Name"], fields["Version"]
    address = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    licence = fields["License-Expression"]
    known = {"licenses": [{"expression": licence}]} if licence else {}
    return {"type": "library", "bom-ref": address, "name": name, "version": version, "purl": address, **known}


def _debian(paragraph: str, distribution: str) -> Component:
    fields = Parser().parsestr(paragraph, headersonly=True)
    name, version = fields["Package"], fields["Version"]
    # In a package URL a plus sign and a colon are written as escapes.
    escaped = version.replace(":", "%3A").replace("+", "%2B"), name.replace("+", "%2B")
    address = f"pkg:deb/debian/{escaped[1]}@{escaped[0]}?arch={fields['Architecture']}&distro={distribution}"
    return {"type": "library", "bom-ref": address, "name": name, "version": version, "purl": address}
