"""What commands compute and print: answers as output structs, and their text.

Commands call it. Each module calls a lower package (scheduler, kubelet, agent, simulator) and parses no arguments."""
