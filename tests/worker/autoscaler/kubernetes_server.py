"""A server with the part of Kubernetes' API that a provider uses: pods of one namespace. It checks what it gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate

SCHEMA_VERSION = kubernetes_validate.latest_version().rpartition(".")[0]
PODS = "/api/v1/namespaces/batch/pods"


class PodServer:
    """The pods by name, and what was asked."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.deleted: list[tuple[str, int]] = []
        """Names and grace periods in seconds."""
        self.tokens: set[str] = set()
        self.fails_with = 0
        """Answer every request with this status; 0: answer properly."""
        self.hangs = threading.Event()
        self.hangs.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                selector = parse_qs(urlsplit(self.path).query).get("labelSelector", [""])[0]
                name, _, value = selector.partition("=")
                items = [pod for pod in server.pods.values() if pod["metadata"]["labels"].get(name) == value]
                self.answer(200, {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items})

            def do_POST(self) -> None:
                pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    kubernetes_validate.validate(pod, SCHEMA_VERSION, strict=True)
                except kubernetes_validate.ValidationError as error:
                    self.answer(422, {"kind": "Status", "message": error.message})
                    return
                name = pod["metadata"]["name"]
                if name in server.pods:
                    self.answer(409, {"kind": "Status", "reason": "AlreadyExists"})
                    return
                server.pods[name] = {**pod, "status": {"phase": "Pending"}}
                self.answer(201, server.pods[name])

            def do_DELETE(self) -> None:
                split = urlsplit(self.path)
                name = split.path.removeprefix(PODS + "/")
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
                asked = parse_qs(split.query).get("gracePeriodSeconds", [body.get("gracePeriodSeconds", -1)])[0]
                if server.pods.pop(name, None) is None:
                    self.answer(404, {"kind": "Status", "reason": "NotFound"})
                    return
                server.deleted.append((name, int(asked)))
                self.answer(200, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})

            def answer(self, status: int, content: dict[str, Any]) -> None:
                server.hangs.wait()
                server.tokens.add(self.headers.get("Authorization", ""))
                if server.fails_with:
                    status, content = server.fails_with, {"kind": "Status", "message": "the server fails"}
                if not self.path.startswith(PODS):
                    status, content = 404, {"kind": "Status", "message": self.path}
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Do not log requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.hangs.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def pod_server() -> Iterator[PodServer]:
    """Run a server."""
    server = PodServer()
    try:
        yield server
    finally:
        server.close()
