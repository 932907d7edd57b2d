"""What a publisher would report of a modelled node."""
