"""What the processes of tests/forked.py have imported before they begin."""

import mate_tf.records.splits
import mate_tf.training.loop  # noqa: F401
