"""NUMA-aware scheduling for Kubernetes, on an exact model of the kubelet's resource managers.

The rooms below import downwards only: `cli`, then `oracle`, then `kubelet`, then `api`. This file holds the version
and nothing else, so importing one room never loads another."""

__version__ = "0.1.0"
