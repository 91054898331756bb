"""Damages files of each kind by chance and reads them; counts what goes wrong.

    nice -n 10 python -m scripts.mutate_files --number=20000

Each file is read as in the process of mate_tf/reading/sandbox.py, with its limits, but many after
the other in the same one. What ends that one is read again with a process of its own, as users have
it: "ended" counts where this gave a sentence. Text with a delimiter and JSON have no such process,
so that they may not end it. It needs Linux, the extra "formats", and no other arguments to make the
same files again.
"""

import argparse
import functools
import gzip
import io
import json
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from mate_tf.reading import sandbox
from mate_tf.reading.files import read_content
from tests.reading.workbooks import opendocument, unzipped, workbook, zipped

KINDS = "ods xlsx gz csv html json parquet xls"
MOST_AT_ONCE = 1000  # in one process
IN_THIS_PROCESS = ("csv", "json")
NAMES = ["City", "People", "Since"]
ROWS: list[list[Any]] = [NAMES, *([f"Città {n}", 37 * n, f"{n + 1}.5.2024"] for n in range(9))]
TEXT = "\n".join(",".join(map(str, row)) for row in ROWS)
TAGS = "".join(f"<tr>{''.join(f'<td>{cell}<sup>1</sup>' for cell in row)}" for row in ROWS)
PAGE = f"<table><caption>a</caption>{TAGS}<tr><td rowspan=3>1<td colspan='2'>2</table>"
ATOMS = "\" , \n \t | - <td> { [ \\ é \0 0 = &#9; ' [] {} </td> <tr>".split(" ")
NUMBERS = b"0 -1 65536 2147483647 99999999999999999999 1e400 NaN".split()


@functools.cache
def seeds(kind: str) -> list[bytes]:
    """Whole files, which are then damaged."""
    records = [dict(zip(NAMES, row, strict=True)) for row in ROWS[1:]]
    cells = [list(map(str, row)) for row in ROWS]
    repeated = '<table:table-row table:number-rows-repeated="3"/>'
    if kind == "csv":
        texts = [
            TEXT,
            TEXT.replace(",", ";"),
            f"|a|b|\n|-|-|\n|1|{cells}|\n",
            "a  b\n-- --\n1  2\n",
        ]
        return [text.encode(codec) for text in texts for codec in ("utf-8", "cp1252", "utf-16")]
    if kind == "gz":
        return [gzip.compress(content) for content in (*seeds("csv"), *seeds("xlsx"))]
    if kind == "json":
        shapes = [records, ROWS, {"columns": NAMES, "data": ROWS[1:]}, {"a": records, "b": ROWS}]
        lines = "\n".join(map(json.dumps, records))
        return [*(json.dumps(shape).encode() for shape in shapes), lines.encode()]
    if kind == "html":
        return [PAGE.encode(), PAGE.encode("utf-16"), f"<p>{PAGE}<p>{PAGE}".encode()]
    if kind == "xls":
        return [pathlib.Path("tests/reading/excel_97.xls").read_bytes()]
    if kind == "xlsx":
        more = dict(merged=["A3:B4"], hidden=[5], formats=[("B3", "0.0%")], more=[("Two", ROWS)])
        return [workbook(ROWS), workbook(ROWS, **more)]
    if kind == "ods":
        return [opendocument(("A", cells)), opendocument(("A", [repeated, *cells]), ("B", cells))]
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist([record | {"list": [1, 2]} for record in records])
    files = [io.BytesIO(), io.BytesIO()]
    parquet.write_table(table, files[0])
    parquet.write_table(table, files[1], use_dictionary=False, compression="gzip")
    return [file.getvalue() for file in files]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Bytes with a few changes: others, fewer, more, larger numbers, or their end cut off."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        start = chance.randrange(len(content) + 1)
        end = min(start + chance.choice((1, 2, 8, 100)), len(content))
        atom = chance.choice(ATOMS).encode() * chance.choice((1, 1, 3, 1000, 20_000))
        value = chance.choice((b"\0\0\0\0", b"\xff" * 4, b"\xff\xff\xff\x7f", b"\x80", b"\xff"))
        numbers = [number.span() for number in re.finditer(rb"\d+", content)]
        where = chance.choice(numbers or [(start, end)])
        content = chance.choice(
            (
                content[:start] + chance.randbytes(end - start) + content[end:],
                content[:start] + content[end:],
                content[:end] + content[start:],
                content if chance.random() < 0.7 else content[:start],
                content[:start] + atom + content[start:],
                content[: where[0]] + chance.choice(NUMBERS) + content[where[1] :],
                content[:start] + value + content[start + len(value) :],
            )
        )
    return content


def made(kind: str, number: int) -> bytes:
    """The damaged file with a number; most of those that are packed are damaged inside."""
    chance = random.Random(f"{kind} {number}")
    content, is_inside = chance.choice(seeds(kind)), chance.random() < 0.7
    if kind in ("ods", "xlsx") and is_inside:
        members = unzipped(content)
        sheets = [name for name in members if "sheet" in name or "content" in name]
        name = chance.choice(sheets if chance.random() < 0.7 else [*members])
        return zipped(**members | {name: damaged(members[name], chance)})
    if kind == "gz" and is_inside:
        return gzip.compress(damaged(gzip.decompress(content), chance))
    return damaged(content, chance)


def outcome(kind: str, number: int) -> str:
    """How a file is read."""
    name = f"a.{kind}"
    try:
        read_content(made(kind, number), name)
    except MemoryError:
        return "aborts" if kind in IN_THIS_PROCESS else "ended"
    except Exception as error:
        is_ours = isinstance(error, ValueError) and re.match(rf"expected .*'{name}'", str(error))
        return "refused" if is_ours and "\n" not in str(error) else f"foreign {error!r}"
    return "tables"


def peak() -> int:
    """The most memory of this process, in MB."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def work(kind: str, numbers: range) -> None:
    """Reads files in this process, and writes a line about each."""
    sandbox.is_inside = True
    begun = peak()
    size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + sandbox.MEMORY, -1))
    for number in numbers:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # of the peak
        start = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(start) + 1 + sandbox.SECONDS, -1))
        how = outcome(kind, number)
        print(number, time.process_time() - start, peak() - begun, how, flush=True)


def count(kind: str, numbers: range) -> str:
    """Has files read, and describes how that ended."""
    counts: Counter[str] = Counter()
    seconds = megabytes = 0.0
    while numbers:
        part = numbers[:MOST_AT_ONCE]
        command = [sys.executable, "-m", "scripts.mutate_files", "--work", f"--kinds={kind}"]
        command += [f"--first={part.start}", f"--number={len(part)}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        for line in done.stdout.splitlines():
            _, second, megabyte, how = line.split(" ", 3)
            seconds, megabytes = max(seconds, float(second)), max(megabytes, float(megabyte))
            counts[how.split()[0]] += 1
            if how.startswith("foreign"):
                print(f"  {kind} {numbers[0]}: {how}", flush=True)
            numbers = numbers[1:]
        if done.returncode:
            name, how = signal.Signals(-done.returncode).name, outcome(kind, numbers[0])
            print(f"  {kind} {numbers[0]}: {name}, then {how}", flush=True)
            is_safe = how == "refused" and kind not in IN_THIS_PROCESS
            counts["ended" if is_safe else "hangs" if name == "SIGXCPU" else "aborts"] += 1
            numbers = numbers[1:]
    words = "tables refused ended hangs aborts foreign".split()
    shares = ", ".join(f"{counts[word]:,} {word}" for word in words)
    return f"{kind}: {shares}; at most {seconds:.1f} s and {megabytes:,.0f} MB"


def main() -> None:
    """Prints a line for each kind."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--kinds", default=KINDS, help="which, with blanks between")
    parser.add_argument("--number", type=int, default=20_000, help="files of each")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--work", action="store_true", help="read them in this process")
    options = parser.parse_args()
    for kind in options.kinds.split():
        numbers = range(options.first, options.first + options.number)
        if options.work:
            work(kind, numbers)
        else:
            print(count(kind, numbers), flush=True)


if __name__ == "__main__":
    main()
