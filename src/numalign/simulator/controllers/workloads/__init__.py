"""Controllers of Deployments, ReplicaSets, DaemonSets, Jobs and PodDisruptionBudgets."""
