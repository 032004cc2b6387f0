"""Tables of trials: their columns, their cells, files of tables, and worklists."""
