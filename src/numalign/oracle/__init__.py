"""Our answers beside the real kubelet's: recorded inputs go through the model, and every difference is data.

The command line calls it; it reads recordings and calls the rooms below, and decides nothing itself."""
