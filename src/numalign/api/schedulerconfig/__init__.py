"""KubeSchedulerConfiguration v1, read as kube-scheduler does: strictly, with its defaults, limits and plugin sets.

`configuration.read` is the entry point. Callers pass readers for the arguments of plugins that are not kube-scheduler's
(kube-scheduler spec 6)."""
