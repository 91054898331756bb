"""Tables become questions and statements to train on.

`creation.write_questions` and `creation.write_statements` make files of them; `questions` and
`statements` make them of one table, and `typed_table` is how both see it.
"""

LAYOUTS = ("TABLES", "TEXTS", "WTQ", "TABFACT")  # of folders of tables (docs/training.md)
