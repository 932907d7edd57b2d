"""GPUs and RDMA NICs, as the kernel and their drivers show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.agent.sources import pcidevices
from numalign.agent.sources.pcidevices import CharacterDevice, PciDevice, PciFunction
from tests import pcitrees

CONTROL = CharacterDevice("/dev/nvidiactl", 195, 255)
MEMORY = CharacterDevice("/dev/nvidia-uvm", 510, 0), CharacterDevice("/dev/nvidia-uvm-tools", 510, 1)
MANAGER = CharacterDevice("/dev/infiniband/rdma_cm", 10, 58)


def found(root: Path) -> dict[str, PciDevice]:
    return {each.bus: each for each in pcidevices.survey(root).devices}


def test_devices_that_containers_can_use_are_found_with_zone_root_and_files(tmp_path: Path) -> None:
    pcitrees.write(tmp_path)
    seen = found(tmp_path)
    assert list(seen) == [pcitrees.GPU_A, pcitrees.NIC, pcitrees.GPU_B, pcitrees.AMD]
    assert seen[pcitrees.GPU_A] == PciDevice(
        kind="gpu",
        bus=pcitrees.GPU_A,
        id="GPU-aaaa",
        zone=0,
        root="pci0000:16",
        labels=(("model", "NVIDIA-A100-SXM4-80GB"), ("vendor", "nvidia")),
        files=(CharacterDevice("/dev/nvidia0", 195, 0), CONTROL, *MEMORY),
    )
    assert seen[pcitrees.AMD] == PciDevice(
        kind="gpu",
        bus=pcitrees.AMD,
        id=pcitrees.AMD,
        zone=-1,
        root="pci0000:c9",
        memory=64 << 30,
        labels=(("vendor", "amd"),),
        files=(CharacterDevice("/dev/dri/renderD128", 226, 128), CharacterDevice("/dev/kfd", 237, 0)),
    )
    assert seen[pcitrees.NIC] == PciDevice(
        kind="rdma",
        bus=pcitrees.NIC,
        id=pcitrees.NIC,
        zone=0,
        root="pci0000:16",
        labels=(("name", "mlx5_0"),),
        files=(CharacterDevice("/dev/infiniband/uverbs0", 231, 192), MANAGER),
        functions=(PciFunction(pcitrees.FUNCTION, (CharacterDevice("/dev/infiniband/uverbs2", 231, 194), MANAGER)),),
    )


def test_a_nic_whose_ports_are_all_down_is_not_healthy(tmp_path: Path) -> None:
    pcitrees.write(tmp_path)
    pcitrees.put(tmp_path, f"sys/bus/pci/devices/{pcitrees.NIC}/infiniband/mlx5_0/ports/1/state", "1: DOWN")
    assert not found(tmp_path)[pcitrees.NIC].healthy


@pytest.mark.parametrize("damaged", ["", "Device Minor: x", "\0\xff", "Model: a\nGPU UUID: GPU-1"])
def test_a_gpu_of_which_the_driver_says_too_little_is_left_out_and_reported(tmp_path: Path, damaged: str) -> None:
    pcitrees.write(tmp_path)
    pcitrees.put(tmp_path, f"proc/driver/nvidia/gpus/{pcitrees.GPU_A}/information", damaged)
    seen = pcidevices.survey(tmp_path)
    assert pcitrees.GPU_A not in {each.bus for each in seen.devices}
    assert pcitrees.GPU_B in {each.bus for each in seen.devices}
    (problem,) = seen.problems
    assert f"{pcitrees.GPU_A}/information: has no minor number" in problem


def test_a_machine_without_pci_has_none(tmp_path: Path) -> None:
    assert pcidevices.survey(tmp_path) == pcidevices.PciSurvey(())
