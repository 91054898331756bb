"""Tables become questions and statements to train on.

`creation.write_questions` and `creation.write_statements` make files of them; `questions` and
`statements` make them of one table, and `typed_table` is how both see it.
"""

MADE = "MADE"  # no folder: tables are made (made_tables.py)
LAYOUTS = ("TABLES", "TEXTS", "WTQ", "TABFACT", MADE)  # of folders of tables (docs/training.md)
