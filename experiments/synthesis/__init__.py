"""Tables become questions and statements to train on (creation.py)."""

from pathlib import Path

from mate_tf.reading.text_files import read_json

MADE = "MADE"  # no folder: tables are made (made_tables.py)
# Of folders of tables (docs/training.md).
LAYOUTS = ("TABLES", "TEXTS", "INTERACTIONS", "WTQ", "TABFACT", MADE)
WORDS = read_json(Path(__file__).with_name("words.json"))
