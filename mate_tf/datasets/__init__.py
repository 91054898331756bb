"""Published data sets become questions about tables, with one file for each data set."""
