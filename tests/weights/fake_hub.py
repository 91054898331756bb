"""A Hugging Face Hub of one process: what huggingface_hub needs to make, fill and read a model."""

import base64
import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

COMMIT = "c" * 40


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the Hub does. Its server has `files`, `stored` by checksum, and `made`."""

    server: Any

    def do_POST(self) -> None:
        body = self._body()
        place = f"http://127.0.0.1:{self.server.server_port}"
        if self.headers["Authorization"] != "Bearer hf_mine":
            self._reply({"error": "Invalid username or password."}, 401)
        elif self.path == "/api/repos/create":
            made = json.loads(body)
            self.server.made = made
            self._reply({"url": f"{place}/{made['organization']}/{made['name']}"})
        elif self.path == "/api/validate-yaml":
            self._reply({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {"path": name, "shouldIgnore": False, "uploadMode": mode}
                for name in (file["path"] for file in json.loads(body)["files"])
                for mode in ("lfs" if name.endswith(".safetensors") else "regular",)
            ]
            self._reply({"files": files})
        elif self.path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**one, "actions": {"upload": {"href": f"{place}/store/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
            ]
            self._reply({"transfer": "basic", "objects": objects})
        else:
            assert "/commit/" in self.path, self.path
            for line in map(json.loads, body.splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    self.server.files[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "lfsFile":
                    self.server.files[value["path"]] = self.server.stored[value["oid"]]
            self._reply({"commitUrl": f"{place}/me/small/commit/{COMMIT}", "commitOid": COMMIT})

    def do_PUT(self) -> None:
        self.server.stored[self.path.removeprefix("/store/")] = self._body()
        self._reply({})

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if "/revision/" in self.path:
            self._reply({"id": "me/small", "sha": COMMIT, "siblings": []})
        elif "/tree/" in self.path:
            files = self.server.files.items()
            self._reply([self._described(*file) for file in files])
        elif name in self.server.files:
            content = self.server.files[name]
            described = self._described(name, content)
            etag = described.get("lfs", described)["oid"]
            self._reply(content, headers={"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        else:
            self._reply({"error": "Entry not found"}, 404)

    do_HEAD = do_GET  # noqa: N815

    def _body(self) -> bytes:
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _described(self, name: str, content: bytes) -> dict[str, Any]:
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        described: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": oid}
        if name.endswith(".safetensors"):
            sha256 = hashlib.sha256(content).hexdigest()
            described["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 130}
        return described

    def _reply(
        self, content: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextlib.contextmanager
def running_hub() -> Iterator[Any]:
    """The server of a hub, which runs meanwhile."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.stored, server.made = {}, {}, None  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
