"""A proxy that stands for a network between clients and a server, and delays, holds or cuts what is sent."""

import random
import socket
import struct
import threading
import time

PIECE = 65_536


def reset(connection):
    """Resets a connection. Unread data are lost."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    except OSError:
        pass


class Proxy:
    """Accepts connections, and connects each with the server at `target`.

    - `delay`: each piece is delayed for a random time of up to so many seconds.
    - ``hold`` stops a direction until ``let_go``. A held request may reach the server when its client no longer waits.
    - ``cut`` ends all connections. With `keeps`, requests that are held still reach the server.
    """

    DIRECTIONS = ("requests", "answers")

    def __init__(self, target, seed):
        self.target, self.drawn, self.delay = target, random.Random(seed), 0
        self.open = {direction: threading.Event() for direction in self.DIRECTIONS}
        self.let_go()
        self.connections, self.lock = set(), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = self.listener.getsockname()
        self.is_over = False
        threading.Thread(target=self.accept, daemon=True).start()

    def hold(self, *directions):
        for direction in directions:
            self.open[direction].clear()

    def let_go(self):
        for event in self.open.values():
            event.set()

    def cut(self, keeps=False):
        with self.lock:
            pairs, self.connections = self.connections, set()
        for client, server in pairs:
            reset(client)
            if not keeps:
                reset(server)
        return len(pairs)

    def end(self):
        self.is_over = True
        self.listener.close()
        self.let_go()
        self.cut()

    def accept(self):
        while not self.is_over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.join, args=(client,), daemon=True).start()

    def join(self, client):
        server = self.connect()
        if server is None:
            reset(client)
            return
        server.settimeout(None)
        for connection in (client, server):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (client, server)
        with self.lock:
            self.connections.add(pair)
        self.carry(pair)

    def connect(self):
        """Returns a connection to the server. It waits for a server that is starting, so requests wait meanwhile."""
        end = time.monotonic() + 20
        while not self.is_over and time.monotonic() < end:
            try:
                return socket.create_connection(self.target, timeout=5)
            except OSError:
                time.sleep(0.02)
        return None

    def carry(self, pair):
        client, server = pair
        threading.Thread(target=self.pump, args=(server, client, "answers", pair), daemon=True).start()
        self.pump(client, server, "requests", pair)

    def pump(self, source, sink, direction, pair):
        try:
            while True:
                piece = source.recv(PIECE)
                if not piece:
                    break
                self.wait(direction)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # If the server ends, the client's connection ends as well. If the client ends, the server does not notice.
            if direction == "answers":
                reset(source)
                reset(sink)
        if direction == "answers":
            with self.lock:
                self.connections.discard(pair)

    def wait(self, direction):
        if self.delay:
            time.sleep(self.drawn.uniform(0, self.delay))
        self.open[direction].wait(60)
