"""A proxy between a server and its bucket: counts the requests, and makes chosen requests fail."""

import collections
import http.client
import http.server
import socket
import threading
import urllib.parse

SLOW_DOWN = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'
INTERNAL = SLOW_DOWN.replace(b"SlowDown", b"InternalError")
DENIED = SLOW_DOWN.replace(b"SlowDown", b"AccessDenied")


class Cut(Exception):
    """Closes the connection without an answer."""


class FaultyBucket:
    """A proxy at a port of its own.

    `fault` is called with a request's method and path, and once more with the bucket's answer. It may return another answer, raise ``Cut``, or
    return `None`.
    """

    def __init__(self, endpoint):
        self.endpoint, self.fault, self.left = urllib.parse.urlsplit(endpoint), None, 0
        # All requests so far, each as its method and path.
        self.asked = []
        bucket = self

        class Handler(Exchange):
            proxy = bucket

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def fail(self, what, times=None, only=("GET", "PUT", "POST", "HEAD", "DELETE")):
        """Makes requests of some methods fail: all of them, or the next `times`."""
        self.left = times if times is not None else 1 << 60
        lock = threading.Lock()

        def fault(method, path, answer):
            if method not in only:
                return None
            with lock:
                if self.left <= 0:
                    return None
                try:
                    made = what(method, path, answer)
                except Cut:
                    self.left -= 1
                    raise
                if made is not None:
                    self.left -= 1
                return made
        self.fault = fault

    def heal(self):
        self.fault = None

    def counted(self, work):
        """Returns how many requests of each method reach the bucket during `work`."""
        return dict(collections.Counter(request.split()[0] for request in self.asked_during(work)))

    def asked_during(self, work):
        """Returns the requests that reach the bucket during `work`, each as its method and path."""
        before = len(self.asked)
        work()
        return self.asked[before:]

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        # The length that the headers give. It is wrong where the body is cut.
        self.length = len(body)


class Exchange(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def exchange(self):
        proxy = self.proxy
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        proxy.asked.append(f"{self.command} {self.path}")
        try:
            answer = proxy.fault and proxy.fault(self.command, self.path, None)
            if not answer:
                answer = self.forward(body)
                answer = proxy.fault and proxy.fault(self.command, self.path, answer) or answer
        except Cut:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        # The answer to a HEAD gives the length of a body that is not sent.
        told = dict((name.lower(), value) for name, value in answer.headers).get("content-length")
        self.send_header("Content-Length", told if self.command == "HEAD" and told else str(answer.length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        if answer.length != len(answer.body) and self.command != "HEAD":
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = exchange

    def forward(self, body):
        # The Host header has to be the one that was signed.
        connection = http.client.HTTPConnection(self.proxy.endpoint.hostname, self.proxy.endpoint.port, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            return Answer(found.status, found.getheaders(), found.read())
        finally:
            connection.close()


# Faults

def internal(method, path, answer):
    return Answer(500, [("Content-Type", "application/xml")], INTERNAL) if answer is None else None


def slow_down(method, path, answer):
    return Answer(503, [("Content-Type", "application/xml")], SLOW_DOWN) if answer is None else None


def denied(method, path, answer):
    return Answer(403, [("Content-Type", "application/xml")], DENIED) if answer is None else None


def cut(method, path, answer):
    """Closes the connection before the bucket has seen the request."""
    if answer is None:
        raise Cut
    return None


def half(method, path, answer):
    """Sends half of a body, and closes the connection."""
    if answer is None or method != "GET" or len(answer.body) < 1000 or answer.status not in (200, 206):
        return None
    answer.body = answer.body[:len(answer.body) // 2]
    return answer


def half_in_full(method, path, answer):
    """Sends half of a body, with headers that claim it is the whole."""
    made = half(method, path, answer)
    if made:
        made.length = len(made.body)
        made.headers = [(name, value) for name, value in made.headers if name.lower() != "content-range"]
        made.status = 200
    return made


def old(method, path, answer):
    """Sends other content of the same size, as if the object had been replaced."""
    if answer is None or method != "GET" or len(answer.body) < 1000 or answer.status not in (200, 206):
        return None
    answer.body = bytes(len(answer.body))
    return answer
