"""Answers kube-scheduler's questions about pods that kube-scheduler schedules: the scheduler extender protocol."""
