"""The command mate-tf."""
