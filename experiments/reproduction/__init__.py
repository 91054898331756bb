"""What `make reproduce` makes: the steps, each a table or a figure of the README, as commands."""
