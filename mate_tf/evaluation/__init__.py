"""The official metrics of the data sets."""
