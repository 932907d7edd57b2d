"""Generates cases for the real components and numalign, in the form of the recorded ones.

Each module covers one subject; `cases` draws from all kubelet families. A seeded `random.Random` determines everything,
so a case can be generated again from its seed and number. The weights favour edge cases: gaps in zone ids, zones
without CPUs, uneven zones, full nodes, odd amounts, combined options."""
