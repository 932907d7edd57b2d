"""Campaigns: random pods and faults on a lab of real kubelets, determined by a seed, with a verdict.

`numalign lab campaign` calls `run`. `script` generates the events, `actions` performs them, `watch` records a
`history`, `judge` evaluates it with `exemptions`, `report` summarises it."""
