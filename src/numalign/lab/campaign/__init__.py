"""Campaigns: random pods and faults on a lab of real kubelets, determined by a seed, with a verdict.

`numalign lab campaign` calls `running`. `load` and `script` generate the events, `acting` and `resting` perform them,
`watching` records a history, `judging` and `excuses` evaluate it, `report` summarises it."""
