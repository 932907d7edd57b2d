"""The dashboard: pages for a browser that show a cluster at one moment, its nodes, its waiting pods and its decisions.

`app.application` makes the pages out of a `source.Source`, which says what there is to show as the structs of `moment`.
The package knows no scheduler: `cli` builds the sources and serves the pages, alone or in the scheduler's process."""
