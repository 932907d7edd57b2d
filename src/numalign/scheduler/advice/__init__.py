"""What would make a pod fit: found by asking rules and engine again with something changed, and never guessed.

`advising` chooses among what `freeing`, `shrinking` and `relaxing` find, `whatif` is whom they ask, and `suggestions`
is what they say. Nothing is charged."""
