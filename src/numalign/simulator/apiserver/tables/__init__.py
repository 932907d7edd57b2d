"""The table printer: objects as the tables that `kubectl get` prints.

`http.responses` and `http.watchstream` call `tables.table`; the other modules hold the columns of the kinds."""
