"""A machine, a configuration and a version, as people type them."""

from pathlib import Path

import pytest

from numalign.api.errors import BadObject
from numalign.cli import inputs
from numalign.kubelet import versions
from numalign.kubelet.machine import presets
from numalign.kubelet.versions import Minor

REFUSING = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
"""


def test_a_machine_goes_by_the_name_of_its_preset() -> None:
    assert inputs.machine("2x16") == presets.machine("2x16")


def test_a_machine_can_be_described_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("{extends: 2x16, name: box}")
    assert inputs.machine(str(file)).name == "box"


def test_a_misspelt_preset_gets_a_suggestion() -> None:
    with pytest.raises(BadObject, match=r"Machine 2x61: no such preset and no such file; did you mean 2x16\?"):
        inputs.machine("2x61")


def test_errors_in_a_machine_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("zones: 5")
    with pytest.raises(BadObject) as refusal:
        inputs.machine(str(file))
    assert str(refusal.value) == f"Machine {file}, zones: 5 is not a list"


def test_without_a_file_the_kubelet_has_its_defaults() -> None:
    settings = inputs.kubelet("2x16", None, None).kubelet.settings
    assert (settings.topology_policy, settings.cpu_policy, settings.memory_policy) == ("none", "none", "None")
    assert settings.minor == versions.NEWEST


def test_a_kubelet_that_would_not_start_is_a_bad_configuration(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(REFUSING)
    with pytest.raises(BadObject) as refusal:
        inputs.kubelet("2x16", str(file), None)
    assert str(refusal.value).startswith(f"KubeletConfiguration {file}: the kubelet would not start: cpumanager: ")


@pytest.mark.parametrize("text, minor", [("1.36", (1, 36)), ("v1.37.2", (1, 37)), ("v1.35.1-gke.100", (1, 35))])
def test_versions_are_read_as_kubernetes_prints_them(text: str, minor: tuple[int, int]) -> None:
    assert inputs.minor(text) == Minor(*minor)


@pytest.mark.parametrize("text", ["", "1", "latest", "1.x", "-1.3", "1.36 ", "1.99999", "١.٣٦"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(BadObject, match=r"Option --kubelet-version: .* is not a Kubernetes version"):
        inputs.minor(text)


@pytest.mark.parametrize("text, answering", [("1.30", versions.OLDEST), ("2.0", versions.NEWEST)])
def test_an_unknown_minor_is_answered_by_the_nearest_with_a_warning(text: str, answering: Minor) -> None:
    (warning,) = inputs.kubelet("2x16", None, text).warnings
    assert warning.endswith(f"answering as {answering}")


def test_a_known_minor_brings_no_warning() -> None:
    assert inputs.kubelet("2x16", None, "1.36").warnings == ()
