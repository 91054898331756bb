"""Workbooks of OpenDocument (.ods)."""

import contextlib
import datetime
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

from mate_tf.reading.layout import check_size
from mate_tf.reading.workbooks import Book, Sheet, shown_value
from mate_tf.tables.cell_texts import plain_value

_CODE = re.compile(r"0\d+")
_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?")
_NO_NUMBERS = ("boolean", "date", "string", "time")  # kinds of values
_MOST_BLANKS = 1000  # that one element stands for


def open_opendocument(content: bytes, _: str) -> Book:
    """Opens a workbook; ElementTree's errors if its XML is not whole."""
    filled: dict[str, bool] = {}
    shown: set[str] = set()
    hidden_styles = set()
    name = style = ""
    for event, element in _elements(content):
        if element.tag == _STYLE("style"):
            style = element.get(_STYLE("name"), "")
        elif element.get(_TABLE("display")) == "false":  # the properties of that style
            hidden_styles.add(style)
        elif event == "start" and element.tag == _TABLE("table"):
            name = element.get(_TABLE("name"), "")
            filled.setdefault(name, False)
            if element.get(_TABLE("style-name")) not in hidden_styles:
                shown.add(name)
        elif element.get(_OFFICE("value-type")):
            filled[name] = True
    return Book(filled, shown, lambda name: _sheet(content, name))


def _elements(content: bytes) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(content)).open("content.xml") as file:
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            yield event, element
            if event == "end" and element.tag == _TABLE("table-row"):
                element.clear()


def _space(name: str) -> Callable[[str], str]:
    return f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}".__add__


_OFFICE, _TABLE, _TEXT, _STYLE = map(_space, ("office", "table", "text", "style"))


def _sheet(content: bytes, name: str) -> Sheet:
    rows: list[list[Any]] = []
    merged = []
    hidden_rows: list[range] = []
    hidden_columns: list[range] = []
    num_rows = num_columns = width = 0  # also those without values, behind which others may come
    is_wanted = False
    for event, element in _elements(content):
        if element.tag == _TABLE("table"):
            if is_wanted:
                break
            is_wanted = element.get(_TABLE("name"), "") == name
        if event == "start" or not is_wanted:
            continue
        if element.tag == _TABLE("table-column"):
            span = range(num_columns, num_columns + _count(element, "number-columns-repeated"))
            num_columns = span.stop
            hidden_columns += [span] if _is_collapsed(element) else []
        elif element.tag == _TABLE("table-row"):
            span = range(num_rows, num_rows + _count(element, "number-rows-repeated"))
            num_rows = span.stop
            hidden_rows += [span] if _is_collapsed(element) else []
            row, spans = _row(element)
            merged += [(span[0], first, span[0] + n - 1, last) for first, n, last in spans]
            if row:
                width = max(width, len(row))
                check_size(num_rows * width)
                rows.extend([] for _ in range(span.start - len(rows)))
                rows.extend(list(row) for _ in span)
    hidden = (n + 1 for span in hidden_rows for n in range(span.start, min(span.stop, len(rows))))
    columns = (n for span in hidden_columns for n in range(span.start, min(span.stop, width)))
    return Sheet(rows, merged, set(hidden), set(columns))


def _row(row: Any) -> tuple[list[Any], list[tuple[int, int, int]]]:
    """The values up to the last one, and of cells that span others column, rows, last column."""
    values: list[Any] = []
    spans = []
    column = 0
    for cell in row:
        if cell.tag not in (_TABLE("table-cell"), _TABLE("covered-table-cell")):
            continue
        first, column = column, column + _count(cell, "number-columns-repeated")
        height, width = (_count(cell, f"number-{of}-spanned") for of in ("rows", "columns"))
        if max(height, width) > 1:
            spans.append((first, height, first + width - 1))
        value = _value(cell)
        if value is not None:
            check_size(column)
            values += [None] * (first - len(values)) + [value] * (column - first)
    return values, spans


def _count(element: Any, name: str) -> int:
    return int(element.get(_TABLE(name), 1))


def _is_collapsed(element: Any) -> bool:
    return element.get(_TABLE("visibility")) in ("collapse", "filter")


def _value(cell: Any) -> Any:
    """A cell's value; as it is shown where it is money, a percentage or has leading zeros."""
    kind = cell.get(_OFFICE("value-type"))
    if kind is None:
        return None
    shown = "\n".join(_paragraphs(cell))
    if (kind in ("percentage", "currency") and shown) or _CODE.fullmatch(shown):
        return shown
    text = cell.get(_OFFICE(f"{kind}-value" if kind in _NO_NUMBERS else "value"), shown)
    with contextlib.suppress(ValueError):
        if kind == "date":
            return plain_value(datetime.datetime.fromisoformat(text))
        if kind == "time" and (parts := _DURATION.fullmatch(text)):
            hours, minutes, seconds = (float(part or 0) for part in parts.groups())
            length = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
            is_of_day = length < datetime.timedelta(days=1)
            return plain_value((datetime.datetime.min + length).time() if is_of_day else length)
        if kind == "boolean":
            return text == "true"
        if kind not in ("string", "void"):
            return shown_value(float(text))
    return text or None


def _paragraphs(cell: Any) -> Iterator[str]:
    for part in cell:
        if part.tag == _OFFICE("annotation"):
            continue
        for paragraph in part.iter(_TEXT("p")):
            for it in paragraph.iter():
                if it.tag in (_TEXT("s"), _TEXT("tab"), _TEXT("line-break")):
                    it.text = " " * min(int(it.get(_TEXT("c"), 1)), _MOST_BLANKS)
            yield "".join(paragraph.itertext())
