"""Our reference flavour beside the real plugin: histories are played on it and judged step by step.

`judging.judge` is what a campaign asks; `playing` plays a history, `dialect` says how much like v0.34.7."""
