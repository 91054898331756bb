"""An encoder with a head and its loss."""
