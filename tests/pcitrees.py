"""A made-up /sys and /proc with GPUs and RDMA NICs, as the drivers of their vendors write them."""

from __future__ import annotations

from pathlib import Path

GPU_A, GPU_B, AMD = "0000:17:00.0", "0000:65:00.0", "0000:ca:00.0"
NIC, FUNCTION, LOOSE_FUNCTION = "0000:18:00.0", "0000:18:00.2", "0000:18:00.3"
UUIDS = {GPU_A: "GPU-aaaa", GPU_B: "GPU-bbbb"}


def write(root: Path) -> None:
    """Two GPUs of NVIDIA in zones 0 and 1, one of AMD without a zone, and in zone 0 a NIC with two virtual functions,
    of which one has a driver. And what is no such device: a display controller of the board, a disk."""
    put(root, "proc/devices", "Character devices:\n195 nvidia\n510 nvidia-uvm\n\nBlock devices:\n259 blkext\n")
    for number, (bus, bridge, zone) in enumerate(((GPU_A, "pci0000:16", 0), (GPU_B, "pci0000:64", 1))):
        device(root, bus, bridge, "0x030200", zone, driver="nvidia")
        said = f"Model: \t\t NVIDIA A100-SXM4-80GB\nGPU UUID: \t {UUIDS[bus]}\nDevice Minor: \t {number}\n"
        put(root, f"proc/driver/nvidia/gpus/{bus}/information", said)
    amd = device(root, AMD, "pci0000:c9", "0x038000", -1, driver="amdgpu")
    put(root, f"{amd}/mem_info_vram_total", str(64 << 30))
    put(root, f"{amd}/drm/renderD128/dev", "226:128")
    put(root, "sys/class/kfd/kfd/dev", "237:0")
    nic = device(root, NIC, "pci0000:16", "0x020000", 0, driver="mlx5_core")
    put(root, f"{nic}/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
    put(root, f"{nic}/infiniband_verbs/uverbs0/dev", "231:192")
    put(root, "sys/class/misc/rdma_cm/dev", "10:58")
    for number, bus in enumerate((FUNCTION, LOOSE_FUNCTION)):
        function = device(root, bus, "pci0000:16", "0x020000", 0)
        (root / function / "physfn").symlink_to(f"../{NIC}")
        (root / nic / f"virtfn{number}").symlink_to(f"../{bus}")
    own = f"sys/bus/pci/devices/{FUNCTION}"
    put(root, f"{own}/infiniband/mlx5_2/ports/1/state", "4: ACTIVE")
    put(root, f"{own}/infiniband_verbs/uverbs2/dev", "231:194")
    device(root, "0000:03:00.0", "pci0000:00", "0x030000", 0, driver="ast")
    device(root, "0000:04:00.0", "pci0000:00", "0x010802", 0, driver="nvme")


def device(root: Path, bus: str, bridge: str, kind: str, zone: int, driver: str = "") -> str:
    """The path of its folder."""
    place = f"sys/devices/{bridge}/{bus}"
    put(root, f"{place}/class", kind)
    put(root, f"{place}/numa_node", str(zone))
    if driver:
        (root / place / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
    link = root / "sys/bus/pci/devices" / bus
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../devices/{bridge}/{bus}")
    return place


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")
