"""Our answers beside the real kubelet's: recorded inputs go through the model, and every difference is data.

The command line calls it: `vectors` reads recorded cases, `families` know their schemas and put them to the model,
`divergence` compares, `replay` counts. It calls the rooms below, and decides nothing itself."""
