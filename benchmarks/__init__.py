"""One module per question, each beside a peer or a limit; `python -m benchmarks` asks them and prints one table.

A question opens with a docstring that states it and exposes `rows() -> Iterable[table.Row]`. Its data is seeded."""
