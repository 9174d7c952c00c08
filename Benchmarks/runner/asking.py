"""A client that sends one request after the other, and costs little itself."""

import json
import socket
import time

from runner.measuring import Failure


class Asker:
    """A connection that sends one request after the other."""

    def __init__(self, port, base):
        self.base = base
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, operation, body, token):
        """The answer, and the milliseconds that it took."""
        content = json.dumps(body).encode()
        request = (f"POST {self.base}{operation} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(content)}\r\n\r\n").encode() + content
        began = time.perf_counter()
        self.socket.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.more()
        head, _, rest = answer.partition(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        parts = [rest]
        while (left := size - sum(map(len, parts))) > 0:
            parts.append(self.more(min(left, 1 << 20)))
        took = (time.perf_counter() - began) * 1e3
        found = json.loads(b"".join(parts))
        if b" 200 " not in head.split(b"\r\n")[0] or "serverErrorCode" in str(found)[:3000]:
            raise Failure(f"{operation}: {head[:200]} {str(found)[:500]}")
        return found, took

    def more(self, size=65536):
        some = self.socket.recv(size)
        if not some:
            raise Failure("the server has closed a connection")
        return some
