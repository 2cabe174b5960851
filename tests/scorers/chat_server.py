"""A real HTTP server on loopback that speaks the chat-completions API and misbehaves on request."""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

PROMPT_TOKENS, COMPLETION_TOKENS = 11, 3


@dataclass(frozen=True)
class Reply:
    """What the server sends: a status, a body (JSON unless it is a text), headers, and how late it begins."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


Answer = Callable[[str, int], Reply]


def completion(text: str | None, probabilities: Mapping[str, float] | None = None, finish: str = "stop") -> Reply:
    """An answer with one choice; ``probabilities`` are those of the first token, the sampled one first."""
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text},
    }
    if probabilities is not None:
        tokens = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in probabilities.items()]
        choice["logprobs"] = {"content": [{**tokens[0], "top_logprobs": tokens}]}
    return _answer([choice])


def no_choices() -> Reply:
    """A well-formed answer that holds nothing."""
    return _answer([])


def _answer(choices: list[dict[str, Any]]) -> Reply:
    usage = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": COMPLETION_TOKENS,
        "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
    }
    return Reply(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": choices, "usage": usage}
    )


def failure(status: int, message: str = "no", **headers: str) -> Reply:
    """An error in the form that OpenAI gives it; a header's name has underscores for hyphens."""
    return Reply(
        {"error": {"message": message, "type": "error", "param": None, "code": None}},
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


class ChatServer:
    """Serves ``answer(user message, how many times it was asked before)`` and keeps what it was asked.

    Attributes:
        url: the API's base.
        requests: the bodies received, in order.
        authorizations: the header of that name of each request.
        most_in_flight: the largest number of requests that were open at once.
    """

    def __init__(self, answer: Answer) -> None:
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.arrivals: list[float] = []
        self.most_in_flight = 0
        self._answer = answer
        self._asked: Counter[str] = Counter()
        self._in_flight = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "ChatServer":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _received(self, request: dict[str, Any], authorization: str | None) -> Reply:
        message = request["messages"][-1]["content"]
        with self._lock:
            self.requests.append(request)
            self.authorizations.append(authorization)
            self.arrivals.append(time.monotonic())
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            before = self._asked[message]
            self._asked[message] += 1
        try:
            reply = self._answer(message, before)
            time.sleep(reply.delay)
        finally:
            with self._lock:
                self._in_flight -= 1
        return reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        received = self._received

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet, else each answer waits for an acknowledgement

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = received(request, self.headers.get("Authorization"))
                body = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
                try:
                    self.send_response(reply.status)
                    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **reply.headers}
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the client has stopped waiting

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: tests read the server's attributes."""

        return Handler
