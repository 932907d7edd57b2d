"""Made-up cases to ask the real kubelet and the model about, in the form of the recorded ones.

One module per subject; `cases.py` draws from all families. Everything hangs on a seeded `random.Random`, so that a
case can be made again from its seed and number. The weights lean towards edges: gaps in zone ids, zones without CPUs,
uneven zones, full nodes, odd amounts, options together."""
