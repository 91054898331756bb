"""Workbooks of Excel and OpenDocument for tests of what is read from them."""

import io
import zipfile
from typing import Any

SHEET = "xl/worksheets/sheet1.xml"  # the first of a workbook of Excel


def workbook(
    rows, hidden=(), merged=(), formats=(), hidden_columns=(), title="Sheet", more=()
) -> bytes:
    """A workbook of Excel: the rows and the title of its first sheet, and those of `more` sheets.

    In the first, rows and columns may be hidden, ranges of cells merged, and cells may have number
    formats.
    """
    import openpyxl

    book: Any = openpyxl.Workbook()
    sheet = book.active
    sheet.title = title
    for of_sheet, its_rows in ((sheet, rows), *((book.create_sheet(n), of) for n, of in more)):
        for row in its_rows:
            of_sheet.append(row)
    for row in hidden:
        sheet.row_dimensions[row].hidden = True
    for letter in hidden_columns:
        sheet.column_dimensions[letter].hidden = True
    for cells in merged:
        sheet.merge_cells(cells)
    for cell, number_format in formats:
        sheet[cell].number_format = number_format
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def opendocument(*sheets, attributes="") -> bytes:
    """A workbook of OpenDocument, as far as readers need it; a row or a cell may be its element."""
    schema = "urn:oasis:names:tc:opendocument:xmlns"

    def cell(text):
        plain = f'<table:table-cell office:value-type="string"><text:p>{text}</text:p>'
        return text if text.startswith("<") else f"{plain}</table:table-cell>"

    def row(cells):
        whole = isinstance(cells, str)
        return cells if whole else f"<table:table-row>{''.join(map(cell, cells))}</table:table-row>"

    tables = "".join(
        f'<table:table table:name="{name}">{attributes}{"".join(map(row, rows))}</table:table>'
        for name, rows in sheets
    )
    names = " ".join(f'xmlns:{of}="{schema}:{of}:1.0"' for of in ("office", "table", "text"))
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    return zipped(
        mimetype="application/vnd.oasis.opendocument.spreadsheet",
        **{"META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="m"/>'},
        **{"content.xml": f"<office:document-content {names}>{body}</office:document-content>"},
    )


def zipped(**members: str | bytes) -> bytes:
    """A zip archive with these members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    """The members of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
