"""What the training of each kind of model (mate_tf/tasks/kinds.py) has of its own.

Each module has `check_data`, which refuses a folder of records that the model cannot learn from,
and `dev_evaluation`, which measures it meanwhile.
"""

from types import ModuleType

from mate_tf.training import classification, masked_lm, span_reading, table_qa

MODULES: dict[str, ModuleType] = {
    "table_qa": table_qa,
    "classification": classification,
    "span_reading": span_reading,
    "masked_lm": masked_lm,
}
