"""Questions and tables, and the numbers they become; nothing here needs the rest of the library."""
