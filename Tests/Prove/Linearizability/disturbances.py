"""Faults while clients work: servers are killed, stopped and started, networks delay and cut, clocks jump, and databases crash."""

import concurrent.futures
import os
import pathlib
import signal
import sys
import threading
import time

from proxy import Proxy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "Interop"))
import start_server  # noqa: E402

FAKETIME = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
SECONDS_OF_DAY = 86_400


class Clock:
    """The wall clock of a process, which libfaketime reads from a file. Monotonic clocks are not changed."""

    def __init__(self, path):
        self.path, self.offset = path, 0
        self.set(0)

    def set(self, seconds):
        self.offset = seconds
        new = self.path.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        os.replace(new, self.path)

    @property
    def environment(self):
        return {"LD_PRELOAD": str(FAKETIME[0]), "FAKETIME_TIMESTAMP_FILE": str(self.path), "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}

    def wrap(self, program):
        """Returns a script that becomes the program, so that libfaketime is loaded a second time.

        The first time it adds a variable to the environment, and a Swift program then does not find its arguments.
        """
        path = self.path.with_name(program.name)
        path.write_text(f"#!/bin/sh\nexec {program} \"$@\"\n")
        path.chmod(0o755)
        return path

    @staticmethod
    def clean(process):
        """Removes what libfaketime has left in shared memory for a killed process."""
        for name in (f"faketime_shm_{process}", f"sem.faketime_sem_{process}"):
            pathlib.Path("/dev/shm", name).unlink(missing_ok=True)


class LocalServer:
    """A server on this machine behind a proxy. It has a clock of its own if `has_clock` is true."""

    def __init__(self, program, folder, where, seed, has_clock, environment=None, proxy=Proxy):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.where, self.environment = folder, where, environment or {}
        self.clock = Clock(folder / "clock") if has_clock and FAKETIME else None
        self.program = self.clock.wrap(program) if self.clock else program
        self.port = 0
        self.start()
        self.proxy = proxy(("127.0.0.1", self.port), seed)

    def start(self):
        """Starts the server, and repeats that if it can't start yet because its database is still starting."""
        added = self.environment | (self.clock.environment if self.clock else {})
        end = time.monotonic() + 60
        while True:
            try:
                self.server = start_server.Server(
                    self.program, self.folder, self.where, *start_server.UNLIMITED, "--log-level", "warning", port=self.port,
                    environment=added)
                break
            except SystemExit:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        self.port = self.server.port

    def signal(self, number):
        self.server.process.send_signal(number)

    def kill(self):
        self.server.kill()
        if self.clock:
            self.clock.clean(self.server.process.pid)

    def end(self):
        self.proxy.end()
        if self.server.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()


class Disturber:
    """Causes faults at random moments, and ends them again. `counts` has the number of each.

    - `servers`: each has `proxy`, `start`, `kill`, `signal` and perhaps a `clock`.
    - `more`: further faults by name: functions that cause a fault and end it.
    - `days`: how far clocks jump at most.
    - `only`: the names of the faults that are wanted, or empty for all.
    """

    AT_ONCE = 2

    def __init__(self, servers, drawn, timeout, days, more=None, only=()):
        self.servers, self.drawn, self.timeout, self.days, self.counts = servers, drawn, timeout, days, {}
        acts = {"kill": self.kill, "stop": self.stop, "cut": self.cut, "hold": self.hold, "delay": self.delay}
        if all(server.clock for server in servers):
            acts["clock"] = self.jump
        acts |= more or {}
        self.acts = {name: act for name, act in acts.items() if not only or name in only}
        self.locks = {name: threading.Lock() for name in self.acts}

    def disturb(self, until):
        """Causes faults until a moment, several at the same time."""
        try:
            with concurrent.futures.ThreadPoolExecutor(self.AT_ONCE) as pool:
                for running in [pool.submit(self.act, until) for _ in range(self.AT_ONCE)]:
                    running.result()
            time.sleep(max(0, until - time.monotonic()))
        finally:
            for server in self.servers:
                server.proxy.delay = 0
                server.proxy.let_go()

    def act(self, until):
        while self.acts:
            pause = self.drawn.uniform(0.2, 2.5)
            if time.monotonic() + pause > until:
                return
            time.sleep(pause)
            name, server = self.drawn.choice(list(self.acts)), self.drawn.choice(self.servers)
            # Two faults of one kind at the same time would end each other's, or start a server twice.
            with self.locks[name]:
                self.acts[name](server)
            self.counts[name] = self.counts.get(name, 0) + 1

    def kill(self, server):
        server.kill()
        time.sleep(self.drawn.choice([0, self.drawn.uniform(0, 1)]))
        server.start()

    def a_while(self):
        """Returns a number of seconds: mostly small, sometimes longer than clients wait."""
        return self.drawn.uniform(0.5, self.timeout * 1.3) if self.drawn.random() < 0.25 else self.drawn.uniform(0.02, 0.5)

    def stop(self, server):
        """Stops the server's process for a while."""
        server.signal(signal.SIGSTOP)
        time.sleep(self.a_while())
        server.signal(signal.SIGCONT)

    def cut(self, server):
        server.proxy.cut()

    def hold(self, server):
        """Holds requests or answers for a while. They are then delivered, sometimes after the client's connection was cut, or lost."""
        server.proxy.hold(*self.drawn.choice([("requests",), ("answers",), ("requests", "answers")]))
        time.sleep(self.a_while())
        if self.drawn.random() < 0.5:
            server.proxy.cut(keeps=self.drawn.random() < 0.7)
        server.proxy.let_go()

    def delay(self, server):
        server.proxy.delay = self.drawn.choice([0.002, 0.02, 0.2])
        time.sleep(self.drawn.uniform(0.2, 2))
        server.proxy.delay = 0

    def jump(self, server):
        """Sets the server's wall clock to another time, near the right one or far from it, or back to the right one."""
        far = self.drawn.choice([1, 60, 3600, SECONDS_OF_DAY, self.days * SECONDS_OF_DAY])
        server.clock.set(self.drawn.choice([0, round(self.drawn.uniform(-far, far))]))
