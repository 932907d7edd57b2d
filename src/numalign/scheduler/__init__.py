"""The scheduler: watches the cluster, chooses a node for each pending pod, binds it and writes Events.

`main` builds the process out of the sub-packages. From top to bottom: `playback` repeats what `record` wrote down,
`explain` and `http` read a running scheduler or a `snapshot` of one, `capacity` and `provisioning` count what would
fit, `extender` answers a stock kube-scheduler, `cycle` schedules one pod at a time, `intake` handles watch events,
`bind` and `preempt` carry out decisions, `choose` decides, `queue` orders pending pods. `queue` and `choose` are pure:
time is an argument."""
