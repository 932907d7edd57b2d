"""Real containers on the nodes of a lab: containerd, images, cgroups and a network of the lab's own.

`up`, `node` and `numalign lab load` use it. Everything here ends with the lab's process, also when that is killed."""
