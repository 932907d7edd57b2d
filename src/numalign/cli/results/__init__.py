"""What commands compute and print: answers as output structs, and their text.

Commands call it. Each module asks a lower room (scheduler, kubelet, agent, simulator) and parses no arguments."""
