"""The model server: plays scripts to real clients over HTTP, and keeps every request it saw."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, TracebackType
from typing import Any
from urllib.parse import urlsplit

from . import anthropic, openai
from .conversation import Conversation
from .scripts import Broken, Error, Hang, Refusal, Say, Script, Turn, turn
from .wire import Answer, Event

KEY = "test-key-not-real"
"""The only key that is accepted."""
APIS: Mapping[str, ModuleType] = {"messages": anthropic, "responses": openai}
"""The last part of a path tells which API it is of."""
SIDE_ANSWER = turn(Say("ok"))
"""What a request without tools gets, as one for a title: it is no turn of a script."""

_PATH = re.compile(r"/s/(?P<script>[^/]+)(?:/v1)?(?:/(?P<rest>.*))?")
_SECRET_HEADERS = {"authorization", "x-api-key", "proxy-authorization", "cookie"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request that was seen."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By names in lower case; those that carry a key are left out."""
    body: Any
    """The JSON document; None when there was none."""
    script: str | None
    """Name of the script that its path asks for."""
    session: str | None
    """The client's own id of the session."""
    conversation: Conversation | None
    """What it tells of its session; None when it asks for no answer of the model."""
    has_key: bool

    @property
    def is_turn(self) -> bool:
        """Whether it asks for a turn of a script."""
        return self.conversation is not None and bool(self.conversation.tools)


class ModelServer:
    """Serves scripts on a loopback port from its start until it is closed.

    A client whose base URL is `url(name)` plays the script of that name, so sessions that run at
    the same time share one server. What went wrong in a handler is raised at the end: no test may
    pass because its server was broken.
    """

    def __init__(self, scripts: Mapping[str, Script] | None = None, *, port: int = 0) -> None:
        self.closing = threading.Event()
        self._scripts = dict(scripts or {})
        self._requests: list[Request] = []
        self._problems: list[BaseException] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.model_server = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ModelServer:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every connection and the server; raise what went wrong in it."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if self._problems and error is None:
            raise self._problems[0]

    @property
    def port(self) -> int:
        """The port of the loopback interface."""
        return self._http.server_address[1]

    @property
    def host(self) -> str:
        """What a sandbox must let the client reach."""
        return f"127.0.0.1:{self.port}"

    def add(self, name: str, script: Script) -> None:
        """Serve a script under a name, in place of one that had it."""
        with self._lock:
            self._scripts[name] = script

    def url(self, script: str, client: str = "claude") -> str:
        """Return the base URL of a script as a client wants it: `claude` or `codex`."""
        return f"http://{self.host}/s/{script}" + ("/v1" if client == "codex" else "")

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far, in the order they came."""
        with self._lock:
            return tuple(self._requests)

    def turns(self, script: str) -> list[Request]:
        """Return the requests that asked for turns of a script, in the order they came."""
        return [seen for seen in self.requests if seen.script == script and seen.is_turn]

    # For the handlers.

    def stamp(self) -> str:
        """Return what makes the ids of an answer its own."""
        return f"{next(self._numbers):06d}"

    def keep(self, request: Request) -> int:
        """Keep a request, and return how often its session asked for the same turn before."""
        with self._lock:
            before = sum(_is_same_turn(request, seen) for seen in self._requests)
            self._requests.append(request)
            return before

    def script(self, name: str | None) -> Script | None:
        """Return the script of a name; None when there is none."""
        with self._lock:
            return self._scripts.get(name or "")

    def report(self, problem: BaseException) -> None:
        """Keep what went wrong in a handler."""
        with self._lock:
            self._problems.append(problem)


def _is_same_turn(one: Request, other: Request) -> bool:
    if one.conversation is None or other.conversation is None:
        return False
    same_session = (one.script, one.session) == (other.script, other.session)
    return same_session and one.conversation.turn == other.conversation.turn


class _Http(ThreadingHTTPServer):
    # A client that hangs up while it is served must not keep the server from its end.
    daemon_threads = True
    # Eight trials start at once, and each opens several connections.
    request_queue_size = 64
    model_server: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: the handlers report what is worth it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    @property
    def _model(self) -> ModelServer:
        return self.server.model_server

    def do_HEAD(self) -> None:
        """Answer the client that asks whether anybody is there."""
        self._keep(None)
        self._send(Answer())

    def do_GET(self) -> None:
        """Refuse a WebSocket, so that the client takes plain HTTP; there is nothing else to get."""
        self._keep(None)
        wants_socket = self.headers.get("upgrade", "").lower() == "websocket"
        status = HTTPStatus.UPGRADE_REQUIRED if wants_socket else HTTPStatus.NOT_FOUND
        self._send(Answer(status=status))

    def do_POST(self) -> None:
        """Play a turn."""
        try:
            self._play()
        except ConnectionError:
            # The client hung up, or was ended: that is its business.
            self.close_connection = True
        except BaseException as problem:
            self._model.report(problem)
            self.close_connection = True
            raise

    def _play(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
        name, rest = self._place()
        if name is None or rest.removesuffix("/count_tokens") not in APIS:
            self._keep(body)
            self._send(Answer(status=HTTPStatus.NOT_FOUND))
            return
        if rest.endswith("/count_tokens"):
            self._keep(body)
            self._send(Answer(body={"input_tokens": 100}))
            return
        api = APIS[rest]
        session = api.conversation(body)
        request, refused = self._keep(body, api, session)
        script = self._model.script(name)
        if not request.has_key:
            played = turn(Error(401))
        elif script is None:
            played = turn(Error(404, f"there is no script {name!r}"))
        elif session.tools:
            played = script.next_turn(session).after(refused)
        else:
            played = SIDE_ANSWER
        self._answer(api, played, session, body)

    def _answer(self, api: ModuleType, played: Turn, session: Conversation, body: Any) -> None:
        first = played.steps[0]
        facts = {"model": body.get("model", ""), "stamp": self._model.stamp()}
        if isinstance(first, Refusal):
            self._send(api.refusal(first, **facts))
        elif isinstance(first, Hang):
            self._hang()
        elif body.get("stream"):
            self._stream(api.stream(played, session, **facts))
        elif any(isinstance(step, Broken) for step in played.steps):
            self.close_connection = True
        else:
            self._send(api.whole(played, session, **facts))

    def _place(self) -> tuple[str | None, str]:
        """Return the script that the path names, and what follows; a proxy gets a whole URL."""
        found = _PATH.fullmatch(urlsplit(self.path).path)
        return (found["script"], found["rest"] or "") if found else (None, "")

    def _keep(
        self, body: Any, api: ModuleType | None = None, session: Conversation | None = None
    ) -> tuple[Request, int]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            method=self.command,
            path=self.path,
            headers={name: text for name, text in headers.items() if name not in _SECRET_HEADERS},
            body=body,
            script=self._place()[0],
            session=headers.get(api.SESSION_HEADER) if api else None,
            conversation=session,
            has_key=any(
                headers.get(name, "").removeprefix("Bearer ") == KEY for name in _SECRET_HEADERS
            ),
        )
        return request, self._model.keep(request)

    def _send(self, answer: Answer) -> None:
        content = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, text in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _stream(self, events: Iterator[Event | Broken | Hang]) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            if isinstance(event, Broken):
                # Without the last chunk, so that the client knows that something is missing.
                self.close_connection = True
                return
            if isinstance(event, Hang):
                self._hang()
                return
            content = event.encoded()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _hang(self) -> None:
        """Keep the connection open and say nothing until the server is closed."""
        self.close_connection = True
        self._model.closing.wait()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the requests are kept."""
