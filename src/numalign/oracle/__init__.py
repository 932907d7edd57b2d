"""Compares numalign's answers with those of the real components, recorded or asked now.

`numalign oracle` calls it. It reads cases, puts them to the real component and to ours, and reports every difference as
data. It decides nothing that the product uses."""
