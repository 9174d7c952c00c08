"""The clouds that are checked: in a directory behind one server, in a PostgreSQL database behind two, and in a cluster behind three."""

import os
import pathlib
import signal
import sys
import time

from disturbances import Disturber, LocalServer
from proxy import Proxy

TOP = pathlib.Path(__file__).resolve().parents[3]
# Deployment/Cluster and Benchmarks both have a module named cluster. The first one is found.
sys.path += [str(TOP / "Tests" / "Interop"), str(TOP / "Deployment" / "Cluster"), str(TOP / "Benchmarks")]
import start_server  # noqa: E402


class Served:
    """A served cloud: its accounts, its servers, and its faults."""

    def __init__(self, cloud, accounts):
        cloud.add_container(start_server.CONTAINER)
        self.accounts = {name: cloud.add_account(name) for name in accounts}
        self.cloud, self.servers, self.more = cloud, [], {}

    @property
    def addresses(self):
        return [server.proxy.address for server in self.servers]

    def index(self, type, field):
        """Makes queries possible for all records of a type, and by the values of a field."""
        for name in ("recordName", field):
            self.cloud.admin("schema", "index", "--container", start_server.CONTAINER, "--type", type, "--field", name, "--queryable")

    def disturber(self, options, drawn):
        return Disturber(self.servers, drawn, options.timeout, options.days, self.more, options.only)

    def log(self):
        logs = {server.folder.name: server.folder / "server.log" for server in self.servers}
        return "\n".join(f"{name}: {path.read_text(errors='replace')[-1500:]}" for name, path in logs.items())

    def end(self):
        for server in self.servers:
            server.end()


class InDirectory(Served):
    """One server over a directory."""

    def __init__(self, options, folder, drawn, accounts, proxy=Proxy):
        super().__init__(start_server.Cloud(options.tidemark, folder), accounts)
        seed = drawn.getrandbits(64)
        self.servers.append(LocalServer(options.server, folder / "server", self.cloud.data, seed, options.clock, proxy=proxy))


class InDatabase(Served):
    """Two servers over one database, each with a network to it. The database and these networks fail as well."""

    def __init__(self, options, folder, drawn, accounts, proxy=Proxy):
        from runner.postgres import Postgres

        folder.chmod(0o755)
        self.drawn, self.timeout = drawn, options.timeout
        self.postgres, self.networks = Postgres(folder / "postgres"), {}
        assets = folder / "assets"
        assets.mkdir()
        try:
            super().__init__(start_server.Cloud(options.tidemark, folder, self.place(self.postgres.port, assets)), accounts)
            for number in (1, 2):
                uploads = folder / f"uploads{number}"
                uploads.mkdir()
                network = Proxy(("127.0.0.1", self.postgres.port), drawn.getrandbits(64))
                server = LocalServer(
                    options.server, folder / f"server{number}", self.place(network.address[1], assets) + ["--data", str(uploads)],
                    drawn.getrandbits(64), options.clock, proxy=proxy)
                self.networks[server] = network
                self.servers.append(server)
        except BaseException:
            self.postgres.stop()
            raise
        self.more = {"database": self.kill_database, "lost-database": self.lose_database}

    @staticmethod
    def place(port, assets):
        return ["--database", f"postgresql://tidemark@127.0.0.1:{port}/tidemark", "--assets", str(assets)]

    def kill_database(self, server):
        """Kills the database, so that it makes no checkpoint, and starts it again, so that it recovers."""
        self.postgres.process.send_signal(signal.SIGQUIT)
        self.postgres.process.wait()
        folder = self.postgres.folder
        # Child processes use the data until they notice that the server has ended.
        for _ in range(100):
            self.postgres.launch()
            time.sleep(0.1)
            if self.postgres.process.poll() is None:
                return
        raise RuntimeError((folder / "log").read_text()[-1000:])

    def lose_database(self, server):
        """Cuts a server's connections to the database, sometimes after they were held in one direction or in both."""
        network = self.networks[server]
        network.hold(*self.drawn.choice([(), ("requests",), ("answers",), ("requests", "answers")]))
        time.sleep(self.drawn.choice([0, self.drawn.uniform(0, 0.5), self.drawn.uniform(0.5, self.timeout * 1.3)]))
        if self.drawn.random() < 0.8:
            network.cut(keeps=self.drawn.random() < 0.5)
        network.let_go()

    def end(self):
        super().end()
        for network in self.networks.values():
            network.end()
        self.postgres.stop()


class InCluster(Served):
    """Three servers over PostgreSQL on three machines, behind the cluster's own proxy. The primary is killed as well."""

    def __init__(self, options, folder, drawn, accounts, proxy=Proxy):
        import cluster as clusters

        os.environ["PATH"] += ":/usr/sbin:/sbin"
        folder.chmod(0o755)
        clusters.install_missing()
        self.drawn = drawn
        self.cluster = clusters.Cluster(
            folder / "cluster", options.server, weed=clusters.find_weed(folder), say=lambda text: print(text, flush=True),
            options=[*start_server.UNLIMITED, "--log-level", "warning"])
        try:
            self.cluster.start()
            super().__init__(start_server.Cloud(options.tidemark, folder, self.cluster.place, self.cluster.environment), accounts)
            for machine in self.cluster.servers:
                self.servers.append(ClusterServer(self.cluster, machine, proxy((machine.address, 8080), drawn.getrandbits(64))))
        except BaseException:
            self.cluster.end(kills=True)
            raise
        self.more = {"primary": self.kill_primary, "network": self.cut_network}

    def kill_primary(self, server):
        from nodes import wait_until

        primary = wait_until("a primary", 120, self.cluster.primary)
        self.cluster.kill_database(primary, etcd=self.drawn.random() < 0.5)
        time.sleep(self.drawn.uniform(0, 3))
        self.cluster.start_database(primary)
        wait_until("a synchronous replica", 240, self.cluster.has_synchronous_replica)

    def cut_network(self, server):
        """Cuts a server off from the database for a while."""
        for other in self.cluster.databases:
            server.machine.cut_from(other)
        time.sleep(self.drawn.uniform(0.5, 6))
        for other in self.cluster.databases:
            server.machine.join_with(other)

    def end(self):
        for server in self.servers:
            server.proxy.end()
        self.cluster.end(kills=True)


class ClusterServer:
    clock = None

    def __init__(self, cluster, machine, proxy):
        self.cluster, self.machine, self.proxy, self.folder = cluster, machine, proxy, machine.directory

    def start(self):
        """Starts the server, and repeats that if it ends because the database has no primary yet."""
        end = time.monotonic() + 180
        self.cluster.start_server(self.machine)
        while not self.cluster.is_ready(self.machine):
            if time.monotonic() > end:
                raise RuntimeError(f"{self.machine.name} does not start: {self.machine.log('server')}")
            if not self.machine.is_running("server"):
                self.cluster.start_server(self.machine)
            time.sleep(0.2)

    def kill(self):
        self.machine.kill("server")

    def signal(self, number):
        self.machine.signal("server", number)


KINDS = {"directory": InDirectory, "database": InDatabase, "cluster": InCluster}
