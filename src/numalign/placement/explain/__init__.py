"""Reasons why pods do not fit as data, the sentences made from them, and what-if questions.

The scheduler and the command line call it. It reads the engine and changes nothing."""
