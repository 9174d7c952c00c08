"""A PostgreSQL server for a benchmark, with its data on the measured disk, and its use of resources."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

from runner.measuring import Failure

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "Tests" / "Interop"))
import signals  # noqa: E402

BINARIES = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
TICKS = os.sysconf("SC_CLK_TCK")


class Postgres:
    """A PostgreSQL server with the settings of Documentation/Guides/Cluster.md: commits are durable. It does not run as root."""

    def __init__(self, folder, settings=()):
        self.take(folder)
        self.run("initdb", "-A", "trust", "-U", "tidemark", "-E", "UTF8", "--locale=C", "-D", folder / "data")
        lines = ["listen_addresses = '127.0.0.1'", "max_connections = 100", "shared_buffers = 512MB", "max_wal_size = 4GB", "wal_compression = lz4", *settings]
        with open(folder / "data" / "postgresql.conf", "a") as file:
            file.write("\n".join(lines) + "\n")
        self.start()
        self.sql("CREATE DATABASE tidemark", "postgres")
        self.address = f"postgresql://tidemark@127.0.0.1:{self.port}/tidemark"

    def take(self, folder):
        """Makes the server's folder, and finds its programs and a free port."""
        programs = BINARIES or (shutil.which("initdb") and pathlib.Path(shutil.which("initdb")).parent)
        if not programs:
            raise Failure("PostgreSQL is not installed: apt-get install postgresql")
        self.programs, self.folder = programs, folder
        self.user = "postgres" if os.geteuid() == 0 else None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.user:
            shutil.chown(folder, self.user, self.user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def start(self):
        """Starts the server over its data directory, and waits until it answers."""
        self.launch()
        for _ in range(600):
            if subprocess.run(self.words("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port, "-d", "postgres")).returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        said = (self.folder / "log").read_text()[-1500:]
        self.stop()
        raise Failure(f"PostgreSQL does not start: {said}")

    def launch(self):
        """Starts the server without waiting. Its port is in no file, because a copy of its data directory may belong to another server."""
        command = self.words("postgres", "-D", self.folder / "data", "-p", self.port, "-k", self.folder)
        self.process = subprocess.Popen(command, stdout=open(self.folder / "log", "a"), stderr=subprocess.STDOUT)
        signals.kill_at_exit(self.process)

    def words(self, program, *arguments):
        as_user = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] if self.user else []
        return [str(word) for word in [*as_user, self.programs / program, *arguments]]

    def run(self, program, *arguments, given=None):
        ended = subprocess.run(self.words(program, *arguments), input=given, capture_output=True, text=True)
        if ended.returncode != 0:
            raise Failure(f"{program} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def sql(self, text, database="tidemark"):
        return self.run("psql", "-h", "127.0.0.1", "-p", self.port, "-U", "tidemark", "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1", given=text).strip()

    def bench(self, script, seconds, clients):
        """Runs a script with pgbench, and returns its transactions a second."""
        path = self.folder / "script.sql"
        path.write_text(script)
        output = self.run("pgbench", "-h", "127.0.0.1", "-p", self.port, "-U", "tidemark", "-n", "-M", "prepared", "-c", clients, "-j", 1, "-T", seconds,
                          "-f", path, "tidemark")
        return next(float(line.split()[2]) for line in output.splitlines() if line.startswith("tps = "))

    def log_position(self):
        """Returns the number of bytes written to the log so far."""
        return int(float(self.sql("SELECT pg_current_wal_lsn() - '0/0'")))

    def processor(self):
        """Returns the processor seconds of all its processes so far, including those that have ended."""
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(stat.parent.name) == self.process.pid:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == self.process.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def stop(self):
        # SIGINT is a fast shutdown, which ends all connections.
        self.process.send_signal(2)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
