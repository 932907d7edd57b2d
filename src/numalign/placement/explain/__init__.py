"""Reasons as data, the sentences made from them, and what-if questions."""
