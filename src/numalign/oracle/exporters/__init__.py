"""Asking the programs that publish topology reports: rows of their tables made up, judged and made smaller."""
