"""Questions about tables, made of tables alone, with the cells that answer them."""
