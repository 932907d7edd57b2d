"""Reads NodeResourceTopology reports into node facts and zone amounts. The ledger and the columns use them."""
