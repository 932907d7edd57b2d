"""What the `plan` commands print: tables, and lines of CSV."""
