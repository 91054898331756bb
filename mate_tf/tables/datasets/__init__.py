"""Readers that turn the official files of a data set into tables and questions."""
