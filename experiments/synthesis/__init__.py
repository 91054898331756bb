"""Tables become questions and statements to train on.

`creation.write_questions` and `creation.write_statements` make files of them; `questions` and
`statements` make them of one table, and `typed_table` is how both see it.
"""

MADE = "MADE"  # no folder: tables are made (made_tables.py)
# Of folders of tables (docs/training.md).
LAYOUTS = ("TABLES", "TEXTS", "INTERACTIONS", "WTQ", "TABFACT", MADE)
