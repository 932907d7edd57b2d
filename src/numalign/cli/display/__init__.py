"""What commands print with: pages of text, zones as a picture, and the output structs that commands share.

Results and commands import it. It knows no command, computes nothing and asks no cluster."""
