"""The attributes of our NodeResourceTopology objects: names, grammar and values."""
