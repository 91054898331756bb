r"""Measures how soon server and page of the default model are there, and their memory, on Linux.

    python -m experiments.benchmarks.starts --rounds=5

Of the server: wall seconds until the port answers and until it is ready, the CPU seconds that it
has then used, and its resident memory while idle and after questions about a table of 800 rows,
with a limit of 16,384 tokens. Of the page the same. Medians of --rounds.
"""

import contextlib
import os
import pathlib
import statistics
import subprocess
import time

from absl import app, flags

from experiments.benchmarks.runners import started, wait_for

_ROUNDS = flags.DEFINE_integer("rounds", 5, "how often each is started", lower_bound=1)
_ASKED = flags.DEFINE_integer("asked", 3, "questions about the long table", lower_bound=1)

_ROWS = (f"name {i},{7 * i},city {i % 50},{1900 + i % 100},{i}.5" for i in range(800))
_TABLE = "\n".join(["name,number,city,year,share", *_ROWS])


def main(_: list[str]) -> None:
    for name, measure in (("server", _server), ("page", _page)):
        rounds = [measure() for _ in range(_ROUNDS.value)]
        for key in rounds[0]:
            values = [one[key] for one in rounds]
            print(f"{name}, {key}: {statistics.median(values):.4g}", flush=True)


def _server() -> dict[str, float]:
    import httpx

    def ask(client: httpx.Client) -> None:
        asked = {"instances": [{"question": "how many are in city 7?", "table": _TABLE}]}
        client.post("v1/models/default_model:predict", json=asked).raise_for_status()

    options = "--port=0", "--max-tokens=16384", "--reply-seconds=900"
    return _measure(["serve", *options], "v2/health/live", ask)


def _page() -> dict[str, float]:
    import httpx

    from mate_tf.page.page import DEFAULTS

    def ask(client: httpx.Client) -> None:
        config = client.get("config").json()
        index = next(one["id"] for one in config["dependencies"] if len(one["inputs"]) == 12)
        data = [None, _TABLE, "how many are in city 7?", False, (), *DEFAULTS]
        call = {"data": data, "fn_index": index, "session_hash": "s"}
        client.post("gradio_api/queue/join", json=call).raise_for_status()
        client.get("gradio_api/queue/data", params={"session_hash": "s"}).raise_for_status()

    return _measure(["page"], "config", ask)


def _measure(command: list[str], live: str, ask) -> dict[str, float]:
    import httpx

    start, measurements = time.monotonic(), {}
    with (
        started(*command) as (process, log, url),
        httpx.Client(base_url=url, timeout=None) as client,
    ):
        is_live = False
        while not is_live:
            time.sleep(0.01)
            with contextlib.suppress(httpx.ConnectError):  # taken before it is served
                is_live = client.get(live).status_code == 200
        measurements["seconds until it is live"] = time.monotonic() - start
        wait_for(log, process, "^ready|^the page is at")
        measurements["seconds until it is ready"] = time.monotonic() - start
        stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, stat[11:13]))
        measurements["CPU seconds until it is ready"] = ticks / os.sysconf("SC_CLK_TCK")
        measurements["MB while idle"] = _megabytes(process)
        for _ in range(_ASKED.value):
            ask(client)
        measurements["MB after a long table"] = _megabytes(process)
    return measurements


def _megabytes(process: subprocess.Popen) -> float:
    pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    app.run(main)
