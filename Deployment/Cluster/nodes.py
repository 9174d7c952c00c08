"""Machines of a cluster on one computer: each has an address, and the processes that run on it.

Root on Linux gets a network namespace for each machine, joined by a bridge, so that a machine's network can be cut. Everybody else gets a
loopback address for each, which nothing can cut.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

BRIDGE, NETWORK = "tidemark0", "10.77.0"


class ClusterError(Exception):
    """What is wrong, and what helps."""


class Interrupted(BaseException):
    """A signal has asked this program to end."""


class Interruption:
    """Signals that ask a program to end. They interrupt waits and nothing else, so that no process is lost that was just started."""

    def __init__(self):
        self.signal, self.is_waiting = None, False

    def listen(self):
        """Listens to SIGINT, SIGTERM and SIGHUP, but not to a signal that the program was started to ignore, as by `nohup`."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.handle)

    def handle(self, number, _):
        self.signal = self.signal or number
        if self.is_waiting:
            self.is_waiting = False
            raise Interrupted

    @contextlib.contextmanager
    def waiting(self):
        """A context that a signal ends, by ``Interrupted``."""
        if self.signal:
            raise Interrupted
        self.is_waiting = True
        try:
            yield
        finally:
            self.is_waiting = False


INTERRUPTION = Interruption()


def tell(text):
    """Says something on standard error, if anybody is there to read it: a terminal may have been closed."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode:
        raise ClusterError(f"{' '.join(words)}: {result.stderr.strip() or result.stdout.strip() or result.returncode}")
    return result.stdout


def have_namespaces():
    """Tells whether this process may make network namespaces and join them."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip"):
        return False
    probe = f"tm-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode == 0
    joined = made and subprocess.run(
        ["ip", "link", "add", f"tmp{os.getpid()}"[:15], "type", "veth", "peer", "name", "eth0", "netns", probe], capture_output=True
    ).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", probe], capture_output=True)
    return joined


class Network:
    """The addresses of the machines, and what joins them."""

    def __init__(self, has_namespaces):
        self.has_namespaces = has_namespaces
        if has_namespaces:
            run("ip", "link", "add", BRIDGE, "type", "bridge")
            run("ip", "addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
            run("ip", "link", "set", BRIDGE, "up")

    def end(self):
        if self.has_namespaces:
            subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)


class Machine:
    """A machine: it has an address, runs programs, loses its power and its network."""

    def __init__(self, network, name, number, directory):
        self.network, self.name, self.directory = network, name, directory / name
        self.address = f"{NETWORK}.{number}" if network.has_namespaces else f"127.0.77.{number}"
        self.namespace, self.link = f"tm-{name}", f"tm-{name}"[:15]
        self.processes = {}
        self.directory.mkdir(parents=True, exist_ok=True)
        if network.has_namespaces:
            subprocess.run(["ip", "netns", "del", self.namespace], capture_output=True)
            run("ip", "netns", "add", self.namespace)
            run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
            run("ip", "link", "set", self.link, "master", BRIDGE, "up")
            run("ip", "-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
            run("ip", "-n", self.namespace, "link", "set", "eth0", "up")
            run("ip", "-n", self.namespace, "link", "set", "lo", "up")

    def start(self, name, words, user=None, environment=None):
        """Starts a program, whose output goes to `name.log` in the machine's directory."""
        if self.is_running(name):
            raise ClusterError(f"{name} runs already on {self.name}")
        words = [str(word) for word in words]
        if user and os.geteuid() == 0:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *words]
        if self.network.has_namespaces:
            words = ["ip", "netns", "exec", self.namespace, *words]
        with open(self.directory / f"{name}.log", "ab") as log:
            # A session of its own: Ctrl-C on the terminal comes to this program alone, which ends the others in order.
            self.processes[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.directory,
                env=os.environ | (environment or {}))

    def is_running(self, name):
        process = self.processes.get(name)
        return process is not None and process.poll() is None

    def signal(self, name, number):
        """Sends a signal to a program and to what it has started."""
        process = self.processes.get(name)
        if process is not None and process.poll() is None:
            os.killpg(process.pid, number)

    def stop(self, name, within=20):
        """Asks a program to end, and kills it if it doesn't."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        for number, seconds in [(signal.SIGTERM, within), (signal.SIGKILL, 10)]:
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            try:
                process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        # Programs that it has started and left behind.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill(self, name):
        """Kills a program with all that it has started, as a loss of power does."""
        process = self.processes.pop(name, None)
        if process is not None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def cut(self):
        """Cuts the machine's network: what is sent from or to it is lost, and nobody is told."""
        if not self.network.has_namespaces:
            raise ClusterError("a loopback address can't be cut: run the cluster as root on Linux")
        run("ip", "link", "set", self.link, "down")

    def join(self):
        """Joins the machine to the network again."""
        run("ip", "link", "set", self.link, "up")

    def cut_from(self, other):
        """Loses what this machine and another send each other, while both reach all others."""
        if not self.network.has_namespaces:
            raise ClusterError("a loopback address can't be cut: run the cluster as root on Linux")
        for one, two in [(self, other), (other, self)]:
            # A hardware address that nobody has.
            run("ip", "-n", one.namespace, "neigh", "replace", two.address, "lladdr", "02:00:00:00:00:01", "dev", "eth0", "nud", "permanent")

    def join_with(self, other):
        """Ends what ``cut_from`` did."""
        for one, two in [(self, other), (other, self)]:
            run("ip", "-n", one.namespace, "neigh", "del", two.address, "dev", "eth0")

    def reaches(self, other, port):
        """Whether a connection from this machine to a port of another is made within half a second."""
        probe = f"import socket; socket.create_connection(({other.address!r}, {port}), 0.5)"
        return subprocess.run(["ip", "netns", "exec", self.namespace, sys.executable, "-c", probe], capture_output=True).returncode == 0

    def end(self, kills=False, within=20):
        """Ends what runs on the machine, and the machine; `kills` where nobody needs its data. A program that is asked has so many seconds."""
        for name in reversed(list(self.processes)):
            self.kill(name) if kills else self.stop(name, within)
        if self.network.has_namespaces:
            subprocess.run(["ip", "link", "del", self.link], capture_output=True)
            subprocess.run(["ip", "netns", "del", self.namespace], capture_output=True)

    def log(self, name, lines=15):
        path = self.directory / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def together(function, values):
    """Calls a function with each value, all at once, and waits for all."""
    threads = [threading.Thread(target=function, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wait_until(what, seconds, test, failed=lambda: None, notice=None):
    """Waits until a test returns something true, and returns that. `notice` is called with the seconds so far, every ten seconds."""
    begin = time.monotonic()
    noticed = 0
    with INTERRUPTION.waiting():
        while True:
            found = test()
            if found:
                return found
            reason = failed()
            if reason:
                raise ClusterError(f"{what}: {reason}")
            passed = time.monotonic() - begin
            if passed > seconds:
                raise ClusterError(f"{what}: not within {seconds} s")
            if notice and passed // 10 > noticed:
                noticed = passed // 10
                notice(int(passed))
            time.sleep(0.2)
