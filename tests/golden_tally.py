"""What was compared with the golden files in a run of the tests, all of its processes together."""

import collections
import os
from typing import Any

from tests import data_folders


class Tally:
    """What was compared, left out, or absent, in all golden folders.

    Attributes:
        is_asked: whether a test that compares is among those of the run.
        compared: of each family the names, largest and relative differences.
        left_out: the family, name and reason of what is not supported.
        absent: files.
        absent_folders: folders.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.compared: dict[str, list[tuple[str, float, float]]] = collections.defaultdict(list)
        self.left_out: list[tuple[str, str, str]] = []
        self.absent: list[str] = []
        self.absent_folders: set[str] = set()

    def values(self) -> dict[str, Any]:
        """All of it, of plain types, as one process tells another."""
        return vars(self) | {
            "compared": dict(self.compared),
            "absent_folders": list(self.absent_folders),
        }

    def add(self, values: dict[str, Any]) -> None:
        """Adds what another process has compared."""
        self.is_asked |= values["is_asked"]
        for family, rows in values["compared"].items():
            self.compared[family] += rows
        self.left_out += values["left_out"]
        self.absent += values["absent"]
        self.absent_folders |= set(values["absent_folders"])

    def lines(self) -> list[str]:
        """A table of it; nothing where nothing was to be compared."""
        if not (self.compared or self.left_out or self.absent or self.absent_folders):
            return []
        lines = [
            "",
            f"golden comparisons, folders {data_folders.GOLDEN} and {data_folders.GOLDEN_REAL}",
            f"{'family':<12} {'compared':>8} {'largest':>10} {'relative':>10}  worst",
        ]
        for family, rows in sorted(self.compared.items()):
            worst = max(rows, key=lambda row: row[2])
            largest = max(row[1] for row in rows)
            lines.append(
                f"{family:<12} {len(rows):>8} {largest:>10.2e} {worst[2]:>10.2e}  {worst[0]}"
            )
        by_reason = collections.defaultdict(list)
        for family, name, reason in self.left_out:
            by_reason[family, reason].append(name)
        for (family, reason), names in sorted(by_reason.items()):
            first = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            lines.append(f"not compared: {len(names)} of {family} ({first}): {reason}")
        lines.append(f"absent folders: {', '.join(sorted(self.absent_folders)) or 'none'}")
        lines.append(f"absent files: {', '.join(sorted(set(self.absent))) or 'none'}")
        lines.append(f"compared: {sum(map(len, self.compared.values()))}")
        return lines

    def problem(self) -> str:
        """Why a run that is to compare all of it has failed; "" where it has not."""
        must_compare = self.is_asked and os.environ.get("MATE_TF_REQUIRE_GOLDEN") == "1"
        return "no golden was compared" if must_compare and not self.compared else ""


TALLY = Tally()
