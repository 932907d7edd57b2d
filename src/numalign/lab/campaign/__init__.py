"""A campaign: a lab of real kubelets under random pods and faults, everything drawn from a seed, and judged.

`running` carries it out, `load` and `script` draw what happens, `acting` and `resting` do it, `watching` writes down
what is seen, `judging` reads that with `excuses`, `report` is what is told in the end."""
