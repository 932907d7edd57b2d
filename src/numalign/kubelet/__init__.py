"""An exact model of the kubelet's Topology, CPU, Memory and Device Managers.

It takes a machine, a state and a pod, and returns the new state and the kubelet's decision. It keeps the kubelet's own
terms (hint, mask, preferred, affinity). It does no I/O, reads no clock and draws no random number."""
