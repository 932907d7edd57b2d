"""An exact model of the kubelet's topology, CPU, memory and device managers.

A machine, a state and a pod go in; the new state and what the kubelet would have decided come out. It keeps the
kubelet's own nouns (hint, mask, preferred, affinity), and never does I/O, reads a clock or draws a random number."""
