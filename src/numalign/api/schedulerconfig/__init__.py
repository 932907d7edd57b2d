"""KubeSchedulerConfiguration v1, as kube-scheduler reads it: strictly, with its defaults, limits and plugin sets.

`configuration.read` is the way in. What plugins of others take as settings is theirs to read: whoever calls brings a
reader for each (kube-scheduler spec 6)."""
