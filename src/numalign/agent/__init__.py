"""The node agent: reads one node, models its kubelet and writes one NodeResourceTopology.

`sources` read the kubelet's sockets, its files and the kernel; `inventory` combines them into a report; `publish`
writes it; `triggers` decide when to read again. `enforce` applies the decisions of direct mode to containers.
`deviceplugin` offers made-up devices for tests and labs."""
