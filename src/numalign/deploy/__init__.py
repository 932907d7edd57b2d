"""What a cluster needs before numalign runs in it. Administrators and the lab use it; no program imports it."""
