"""Runs a notebook's code and stores in it what each cell shows, without Jupyter.

    python -m scripts.run_notebook docs/quick_start.ipynb

A cell shows what it prints, and its last expression: as HTML where the value has `_repr_html_`,
otherwise as text.
"""

import ast
import contextlib
import io
import json
import pathlib
import sys
from typing import Any


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Puts the outputs into a notebook; returns the names that its code defines."""
    names: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        cell["execution_count"] = number
        cell["outputs"] = _outputs("".join(cell["source"]), number, names)
    return names


def _outputs(source: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    statements = ast.parse(source).body
    last = statements.pop() if isinstance(statements[-1], ast.Expr) else None
    value: Any = None
    outputs: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(statements, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        as_html = getattr(value, "_repr_html_", None)
        data = {"text/html": as_html()} if as_html else {"text/plain": repr(value)}
        shown = {"data": data, "execution_count": number, "metadata": {}}
        outputs.append({**shown, "output_type": "execute_result"})
    return outputs


def main(path: pathlib.Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    run(notebook)
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
