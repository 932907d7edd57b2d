"""The node agent: reads one node, models its kubelet, writes one NodeResourceTopology.

`readings` takes one consistent look at the kubelet's sockets and files and at the machine; `inventory` turns it into a
report; `publish` writes it. The device plugin that tests and labs use to offer made-up devices lives here too."""
