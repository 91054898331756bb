"""The command mate-tf: questions asked of tables from a terminal."""
