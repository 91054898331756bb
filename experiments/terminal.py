"""What the binaries share: errors as one sentence, and little of what TensorFlow says."""

import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags, logging

from mate_tf.command_line.terminal import is_ours_or_serious, sentence_for_user, silence_tensorflow

silence_tensorflow()


def run(main: Callable[[list[str]], Any], **kwargs) -> None:
    """Runs a binary; what the user can mend ends it with one sentence, not a stack trace."""

    def guarded(argv: list[str]) -> int | None:
        logging.get_absl_handler().addFilter(is_ours_or_serious)
        try:
            return main(argv)
        except Exception as error:
            message = sentence_for_user(error)
            if message is None:
                raise
            logging.debug("%s", error, exc_info=True)
            print(f"{sys.argv[0].rsplit('/', 1)[-1]}: {message}", file=sys.stderr)
            return 1

    _show_shared_flags()
    app.run(guarded, **kwargs)


def _show_shared_flags() -> None:
    """Lets --help show the flags of the modules that a binary shares with others too."""
    for module, shared in flags.FLAGS.flags_by_module_dict().items():
        if module.startswith(f"{__package__}."):
            for flag in shared:
                flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)
