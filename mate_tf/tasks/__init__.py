"""What a model does with an encoded table: heads, their losses, and answers."""
