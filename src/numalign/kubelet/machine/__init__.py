"""The hardware of a node: zones, cores, devices and their distances; presets and machine files."""
