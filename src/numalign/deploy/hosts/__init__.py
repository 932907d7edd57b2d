"""What an installation needs on the hosts themselves: the kubelet's configuration and, where numalign replaces
kube-scheduler, the manifest of the static pod. The command line calls both."""
