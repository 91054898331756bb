"""Rows that are totals or statistics of others, such as "Total" and "Average" below a table."""

import itertools
import math
import re
import statistics
from collections.abc import Callable, Sequence

from mate_tf.tables.columns import Column
from mate_tf.tables.notations import TOTAL
from mate_tf.tables.values import read_cell

_SAME = 1e-9  # the relative difference of sums that are the same
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    r"average|avg|mean|ø|⌀|mittelwert|durchschnitt|moyenne|promedio|media|média|gemiddelde|średnia|"
    r"ortalama|среднее|平均|평균": statistics.fmean,
    r"median|médiane|mediana": statistics.median,
    r"min|minimum|lowest|smallest|最小|最低": min,
    r"max|maximum|highest|largest|最大|最高": max,
    r"count|n|number|anzahl|nombre|件数": len,
    r"std|std\.? ?dev|sd|standard deviation|standardabweichung": statistics.stdev,
}
_STATISTIC = {re.compile(rf"(?:{name})[.:]*"): one for name, one in _STATISTICS.items()}
_LEAST_NAMELESS = 3  # rows above a total without a name


def read_totals(
    rows: Sequence[Sequence[str]], header: Sequence[str], column: Callable[[int], Column]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The rows that are totals or statistics, and sentences about them.

    A total is called so, or is the last row and lacks a name, and a number in it is the sum of
    numbers above it, to half of its last digit for each of these. The sum is of all rows above, or
    of those since the last row that is called a total, or of all others for the first row. Rows
    that are called totals are not added up. Statistics are at the end of a table. Groups of a pivot
    table are totals of the rows below them. `column` gives a column of the table by its number; it
    is not asked where no row is called a total.
    """
    names = [next(filter(None, (read_cell(cell).text for cell in row)), "") for row in rows]
    named = [row for row, name in enumerate(names) if TOTAL.fullmatch(name)]
    by_row = dict(_statistics(names))
    is_nameless = len(rows) > _LEAST_NAMELESS and len(header) > 1 and not rows[-1][0].strip()
    if not named and not by_row and not is_nameless:
        return (), ()
    numbers = {
        index: column(index).numbers
        for index in range(len(header))
        if column(index).kind in ("number", "duration")
    }
    if is_nameless and not named and not by_row and all(row[0].strip() for row in rows[:-1]):
        of_last = [(row[-1], sum(it or 0.0 for it in row[:-1])) for row in numbers.values()]
        is_sum = any(of_last) and all(
            last and _is_same(last, total, "", 0) for last, total in of_last
        )
        named = [len(rows) - 1] if is_sum else []
    totals, unlike = _sums(rows, numbers, named)
    others = [row for row in range(len(rows)) if row not in totals and row not in by_row]
    for index, values in numbers.items():
        data = [number for row in others if (number := values[row]) is not None]
        for row, function in by_row.items():
            number = values[row]
            if number is None or len(data) < 2:
                continue
            if _is_same(number, function(data), rows[row][index], 1):
                totals[row] = "is computed from"
    if named and named[-1] == len(rows) - 1 and named[-1] not in totals:
        groups = _groups(list(numbers.values()), named[-1])
        totals |= dict.fromkeys(groups, "is a total of")
        unlike = [row for row in unlike if row not in groups]
    notes = [
        (row, f"{kind} others; sums, averages and counts leave it out")
        for row, kind in sorted(totals.items())
    ]
    notes += [
        (row, "is not the sum of the rows above; sums, averages and counts include it")
        for row in unlike
    ]
    sentences = (
        f"Row {row + 1}, '{next(filter(str.strip, rows[row]))}', {note}." for row, note in notes
    )
    return tuple(sorted(totals)), tuple(sentences)


def _statistics(names: Sequence[str]) -> list[tuple[int, Callable[[Sequence[float]], float]]]:
    """The rows at the end that are called statistics, with the function of each."""
    functions = [
        next((one for name, one in _STATISTIC.items() if name.fullmatch(text)), None)
        for text in names
    ]
    found = []
    for row in range(len(names) - 1, 1, -1):
        if (function := functions[row]) is not None:
            found.append((row, function))
        elif not TOTAL.fullmatch(names[row]):
            break
    is_of_statistics = any(functions[: found[-1][0]] if found else ())  # all rows are some
    return [] if is_of_statistics else found


def _sums(
    rows: Sequence[Sequence[str]],
    numbers: dict[int, tuple[float | None, ...]],
    named: Sequence[int],
) -> tuple[dict[int, str], list[int]]:
    """Of the rows that are called totals those that are, and those that are not."""
    totals: dict[int, str] = {}
    unlike: dict[int, None] = {}
    for index, values in numbers.items():
        parts = [number or 0.0 for number in values]
        for row in named:
            parts[row] = 0.0
        sums = [0.0, *itertools.accumulate(parts)]  # of the rows above each
        for row, before in zip(named, [0, *named], strict=False):
            total, count = values[row], row if row else len(rows)
            if not total:
                continue
            unlike[row] = None
            for added in (sums[row], sums[row] - sums[before], sums[-1] if row == 0 else 0.0):
                if _is_same(total, added, "", 0):
                    totals[row] = "is a total of"
                elif _is_same(total, added, rows[row][index], count):
                    totals.setdefault(row, "is a rounded total of")
    return totals, [row for row in unlike if row not in totals]


def _is_same(total: float, added: float, text: str, count: int) -> bool:
    """Whether a number is another one, to half of its last digit for each of some numbers.

    Of whole numbers this is at most a hundredth of it.
    """
    decimals = re.search(r"\d[.,](\d{1,3})(?!.*\d)", text)
    is_whole = total == int(total) and not (decimals and decimals[1] in ("0", "00"))
    if is_whole or decimals is None:
        rounding = min(0.5 * count, 0.01 * abs(total)) if text else 0.0
    else:
        rounding = 0.5 * count * 10.0 ** -len(decimals[1])
    return math.isclose(total, added, rel_tol=_SAME, abs_tol=rounding + _SAME)


def _groups(columns: Sequence[tuple[float | None, ...]], last: int) -> list[int]:
    """The rows that are sums of those below them, up to the next such one, and the grand total."""
    heads: list[int] = []
    for numbers in columns:
        values = [number or 0.0 for number in numbers[:last]]
        found, row = [], 0
        while row < last:
            head, end, added = row, row + 1, 0.0
            while end < last and (end == head + 1 or not _is_same(values[head], added, "", 0)):
                added += values[end]
                end += 1
            if not _is_same(values[head], added, "", 0):
                return []
            found.append(head)
            row = end
        is_whole = _is_same(numbers[last] or 0.0, sum(values[head] for head in found), "", 0)
        if not is_whole or (heads and found != heads) or last < 2 * len(found) + 1:
            return []
        heads = found
    return [*heads, last] if len(heads) > 1 else []
