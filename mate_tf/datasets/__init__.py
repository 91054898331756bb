"""Published data sets become questions about tables, a file a data set."""
