"""The cluster as arrays: one row per node. The engine writes them; every other package of placement reads them."""
