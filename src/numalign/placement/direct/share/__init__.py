"""Devices in parts and together: which GPUs, NICs and FPGAs a container gets inside given zones.

`taking` calls `choosing.allocate` for zones that `scope` considers, `asks` resolves what the pod wants on a machine,
and `amounts` counts what is in use. Everything here is a function of its arguments."""
