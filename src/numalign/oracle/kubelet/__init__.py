"""Compares the model of the kubelet's managers with the real ones: recorded cases by family, and generated ones."""
