"""A file, a data frame or text becomes a Table."""
