"""`python -m mate_tf` is the command mate-tf."""

import sys

from mate_tf.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
