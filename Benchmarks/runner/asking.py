"""A client that sends one request after the other, and uses little processor time itself."""

import json
import socket
import time
import urllib.parse

from runner.measuring import Failure


class Connection:
    """A connection that sends one request after the other."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, request):
        """Sends a request, and returns the head and the body of the answer, and the milliseconds until all of it was read."""
        began = time.perf_counter()
        self.socket.sendall(request)
        head, body = self.receive()
        return head, body, (time.perf_counter() - began) * 1e3

    def receive(self):
        """Returns the head and the body of the next answer."""
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.more()
        head, _, rest = answer.partition(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        parts = [rest]
        while (left := size - sum(map(len, parts))) > 0:
            parts.append(self.more(min(left, 1 << 20)))
        return head, b"".join(parts)

    def more(self, size=65536):
        some = self.socket.recv(size)
        if not some:
            raise Failure("the server has closed a connection")
        return some


class Asker(Connection):
    """Sends requests of the protocol."""

    def __init__(self, port, base):
        super().__init__(port)
        self.base = base

    def ask(self, operation, body, token):
        """Sends a request, and returns the answer, and the milliseconds that it took."""
        head, answer, took = self.exchange(self.request(operation, body, token))
        return self.checked(operation, head, answer), took

    def request(self, operation, body, token):
        """Returns the bytes of a request. A request without a body is a GET."""
        content = json.dumps(body).encode() if body is not None else b""
        described = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if body is not None else ""
        method = "GET" if body is None else "POST"
        return f"{method} {self.base}{operation} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{described}\r\n".encode() + content

    @staticmethod
    def checked(operation, head, answer):
        """Returns the content of an answer, which must not be an error."""
        found = json.loads(answer)
        if b" 200 " not in head.split(b"\r\n")[0] or "serverErrorCode" in str(found)[:3000]:
            raise Failure(f"{operation}: {head[:200]} {str(found)[:500]}")
        return found


class Visitor(Connection):
    """Opens pages like a signed-in browser."""

    def __init__(self, port, account):
        super().__init__(port)
        self.host = f"127.0.0.1:{port}"
        form = urllib.parse.urlencode({"email": account["email"], "password": account["password"]})
        head, body, _ = self.exchange(
            f"POST /console/sign-in HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(form)}\r\n\r\n{form}".encode())
        cookie = next((line.split(b":", 1)[1] for line in head.split(b"\r\n") if line.lower().startswith(b"set-cookie:")), None)
        if not cookie or b" 303 " not in head.split(b"\r\n")[0]:
            raise Failure(f"nobody is signed in: {head[:300]} {body[:300]}")
        self.cookie = cookie.split(b";")[0].strip().decode()

    def open(self, path):
        """Returns a page, and the milliseconds that it took."""
        head, body, took = self.exchange(f"GET /console{path} HTTP/1.1\r\nHost: {self.host}\r\nCookie: {self.cookie}\r\n\r\n".encode())
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise Failure(f"{path}: {head[:300]} {body[:500]}")
        return body.decode(), took
