"""The place of the cloud to which the drivers talk: a directory, PostgreSQL with a shared directory for assets, or a cluster.

Each place has a cloud that `tidemark admin` fills, starts what serves it, and ends that again.
"""

import pathlib
import shutil
import sys
import tempfile

import start_server

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "Deployment" / "Cluster"), str(ROOT / "Benchmarks")]
import cluster as clusters  # noqa: E402
from nodes import ClusterError, together, wait_until  # noqa: E402, F401
from runner.postgres import Postgres  # noqa: E402


class Directory:
    """One server over a directory."""

    name, is_database = "a directory", False
    server = None

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.cloud = start_server.Cloud(options.tidemark, folder, *self.place())

    def place(self):
        return ()

    def serve(self, *words, tls, port=0):
        certificate = start_server.make_certificate(self.folder) if tls else None
        self.server = start_server.Server(
            self.options.server, self.folder, self.cloud.place, *self.more(), *words, certificate=certificate, port=port,
            environment=self.cloud.environment)
        return self.server

    def more(self):
        return []

    @property
    def pids(self):
        return [self.server.process.pid]

    @property
    def folders(self):
        """The folder with the servers' own files."""
        return [self.folder / "data"]

    def fell(self):
        """The servers that have ended by themselves."""
        return [f"the server fell with {self.server.process.poll()}"] if self.server.process.poll() is not None else []

    def stop(self):
        """The exit statuses of the servers that were asked to end."""
        return [self.server.stop()]

    def kill(self):
        """Ends the server if it runs; there may be none yet."""
        if self.server:
            self.server.kill()

    def logs(self):
        return [self.server.log]

    def end(self):
        pass


class Database(Directory):
    """One server over a PostgreSQL database of its own."""

    name, is_database = "PostgreSQL", True

    def place(self):
        # Not in the server's folder, because the drivers look at the files there.
        self.database = Postgres(self.folder.with_name(self.folder.name + "-postgresql"))
        self.assets = self.folder / "data" / "assets"
        self.assets.mkdir(parents=True, mode=0o700)
        return ["--database", self.database.address, "--assets", self.assets], None

    def more(self):
        return ["--data", str(self.folder / "data")]

    def end(self):
        self.database.stop()
        shutil.rmtree(self.database.folder, ignore_errors=True)


class Cluster:
    """Three servers behind HAProxy, over PostgreSQL under Patroni and a bucket of SeaweedFS."""

    name, is_database = "a cluster", True

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        folder.mkdir(parents=True, exist_ok=True)
        # The database's user must be able to enter the folder, which does not hold for every folder.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-interop-"))
        self.directory.chmod(0o755)
        self.cluster = clusters.Cluster(self.directory, options.server, weed=clusters.find_weed(self.directory))
        self.cloud = start_server.Cloud(options.tidemark, folder, self.cluster.place, self.cluster.environment)

    def serve(self, *words, tls):
        if tls:
            self.cluster.certificate = start_server.make_certificate(self.folder, self.cluster["proxy"].address)
        self.cluster.options += ["--data", "data", *words]
        self.cluster.start()
        return Proxied(self.cluster)

    @property
    def processes(self):
        return [machine.processes["server"] for machine in self.cluster.servers]

    @property
    def pids(self):
        return [process.pid for process in self.processes]

    @property
    def folders(self):
        return [machine.directory / "data" for machine in self.cluster.servers]

    def fell(self):
        return [f"{machine.name} fell with {process.poll()}" for machine, process in zip(self.cluster.servers, self.processes) if process.poll() is not None]

    def stop(self):
        processes = self.processes
        together(lambda machine: machine.stop("server", 40), self.cluster.servers)
        for machine in self.cluster.servers:
            shutil.copy(machine.directory / "server.log", self.folder / f"{machine.name}.log")
        return [process.returncode for process in processes]

    def logs(self):
        return [self.folder / f"{machine.name}.log" for machine in self.cluster.servers]

    def fail_over(self):
        """Kills the primary of the database with its machine's Patroni and etcd."""
        self.killed = self.cluster.primary()
        self.cluster.kill_database(self.killed, etcd=True)

    def failed_over(self):
        """The machine that has taken over."""
        found = wait_until("another primary", 120, lambda: next((it for it in [self.cluster.primary()] if it and it is not self.killed), None))
        return f"{self.killed.name} was killed, {found.name} has taken over"

    def end(self):
        self.cluster.end(kills=True)
        shutil.rmtree(self.directory, ignore_errors=True)


class Proxied:
    """A cluster as the drivers see it: its proxy."""

    def __init__(self, cluster):
        certificate = cluster.certificate
        self.certificate = certificate and str(certificate[0])
        self.url = f"https://{cluster['proxy'].address}:8443" if certificate else f"http://{cluster['proxy'].address}:8080"

    def sign_in(self, account, container=start_server.CONTAINER):
        return start_server.sign_in(self.url, account, container, self.certificate)


PLACES = {"directory": Directory, "postgres": Database, "cluster": Cluster}
