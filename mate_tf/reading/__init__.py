"""Reading: a file that may be hostile becomes a table in a process of its own."""
