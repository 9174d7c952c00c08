#!/usr/bin/env python3
"""Runs a whole cluster on this computer, to try it: PostgreSQL on three machines under Patroni and etcd, an S3 (SeaweedFS), three servers of
Tidemark, and HAProxy before both. Ctrl-C ends all of it, as do SIGTERM and a closed terminal.

Each machine has a network namespace of its own where this program runs as root on Linux, and a loopback address elsewhere.

Examples:
  cluster.py                        runs everything in a temporary directory, and says where things are
  cluster.py --directory ./cluster  keeps the data, and goes on with it the next time
  cluster.py --servers 0            the database, the bucket and the proxy alone
  cluster.py --end                  ends what a run has left that was killed
"""

import argparse
import json
import os
import pathlib
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import leftovers  # noqa: E402
import report  # noqa: E402
from leftovers import KEPT  # noqa: E402
from nodes import INTERRUPTION, ClusterError, Interrupted, Machine, Network, have_namespaces, run, tell, together, wait_until  # noqa: E402
from packages import BINARIES, install_missing  # noqa: E402
from weed import bucket_options, find_weed  # noqa: E402

DATABASE = BUCKET = "tidemark"
NONE_READY = json.dumps({"serverErrorCode": "TRY_AGAIN_LATER", "reason": "no server is ready", "retryAfter": 1})
# What a person can try: a container and an account.
CONTAINER, EMAIL = "iCloud.org.example.journal", "anna@example.org"


def fetch(url, seconds=2):
    """The status of a GET; 0 where nothing answers."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


class Cluster:
    """The machines db1 to db3, s3, proxy and server1 to serverN."""

    # Whether anything was started. Until then the directory may be another cluster's.
    has_begun = False

    def __init__(self, directory, server=None, servers=3, weed=None, namespaces=None, say=lambda text: None, options=(), certificate=None):
        """`options` are further options of each server, beside the places of its database and bucket. `certificate` names the files of a
        certificate and of its key: with them the proxy speaks TLS as well, at port 8443."""
        self.directory, self.say, self.options, self.certificate = directory, say, list(options), certificate
        self.server, self.weed = server, weed
        # PostgreSQL does not run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        has_namespaces = have_namespaces() if namespaces is None else namespaces
        closed = next((parent for parent in directory.parents if self.user and parent.exists() and not parent.stat().st_mode & stat.S_IXOTH), None)
        if closed:
            raise ClusterError(f"the user {self.user}, as whom the databases run, can't pass through {closed}: name a directory elsewhere, such as /srv/cluster")
        self.secrets = self.kept_secrets(has_namespaces)
        if has_namespaces:
            leftovers.remove_empty()
        self.network = Network(has_namespaces)
        self.machines = {}
        try:
            for number in (1, 2, 3):
                self.add(f"db{number}", 10 + number)
            self.add("s3", 20)
            self.add("proxy", 30)
            for number in range(1, servers + 1):
                self.add(f"server{number}", 40 + number)
        except BaseException:
            self.end()
            raise

    def kept_secrets(self, has_namespaces):
        """The passwords and keys of the data: those in the directory, or new ones, which are written there."""
        self.directory.mkdir(parents=True, exist_ok=True)
        file, network = self.directory / KEPT, "namespaces" if has_namespaces else "loopback"
        if file.exists():
            kept = json.loads(file.read_text())
            if kept["network"] != network:
                raise ClusterError(
                    f"{self.directory} has a cluster on loopback addresses: give --loopback" if has_namespaces
                    else f"{self.directory} has a cluster in network namespaces: run this as root on Linux, without --loopback")
            return kept["secrets"]
        if any((self.directory / f"db{number}" / "data").exists() for number in (1, 2, 3)):
            raise ClusterError(f"{self.directory} has databases, and no {KEPT} with their passwords: name another directory, or remove this one")
        new = {name: secrets.token_hex(16) for name in ("postgres", "replicator", "tidemark", "access", "secret")}
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            json.dump({"network": network, "secrets": new}, opened, indent=2)
        return new

    def add(self, name, number):
        self.machines[name] = Machine(self.network, name, number, self.directory)

    def __getitem__(self, name):
        return self.machines[name]

    @property
    def databases(self):
        return [self[f"db{number}"] for number in (1, 2, 3)]

    @property
    def servers(self):
        return [machine for name, machine in self.machines.items() if name.startswith("server")]

    def write(self, machine, name, text, mode=0o600):
        path = machine.directory / name
        path.write_text(text)
        path.chmod(mode)
        if self.user:
            shutil.chown(path, self.user)
        return path

    # Starting

    def start(self):
        if not self.network.has_namespaces:
            leftovers.check_free(self.places())
        self.has_begun = True
        for machine in self.machines.values():
            if self.user:
                shutil.chown(machine.directory, self.user)
        self.say("etcd, and PostgreSQL under Patroni, on three machines …")
        for machine in self.databases:
            self.start_etcd(machine)
        for machine in self.databases:
            self.start_patroni(machine)
        if self.weed:
            self.start_bucket()
        self.start_proxy()
        self.say("A primary and its synchronous replica …")
        def notice(seconds):
            self.say(f"  for {seconds} s: {self.states()}")

        wait_until("a primary", 120, self.primary, notice=notice)
        wait_until("a synchronous replica", 120, self.has_synchronous_replica, notice=notice)
        wait_until("the proxy", 30, lambda: fetch(f"http://{self['proxy'].address}:8404/"), lambda: self.died(self["proxy"], "haproxy"))
        if self.server:
            self.say(f"{len(self.servers)} servers …")
            for machine in self.servers:
                self.start_server(machine)
            for machine in self.servers:
                wait_until(
                    machine.name, 60, lambda: self.is_ready(machine), lambda: self.died(machine, "server"),
                    lambda seconds: self.say(f"  for {seconds} s: {machine.name} is not ready; {machine.directory}/server.log says why"))

    def places(self):
        """All addresses and ports at which something is to listen, with the machines' names."""
        for machine in self.databases:
            yield from ((machine.name, machine.address, port) for port in (2379, 2380, 5432, 8008))
        if self.weed:
            yield from self.bucket_places()
        yield from (("proxy", self["proxy"].address, port) for port in [5432, 8080, 8404] + [8443] * bool(self.certificate))
        yield from ((machine.name, machine.address, 8080) for machine in self.servers if self.server)

    def bucket_places(self):
        """The addresses and ports at which SeaweedFS is to listen, for HTTP and for gRPC, with the machine's name."""
        return [("s3", self["s3"].address, port + more) for port in self.bucket_ports.values() for more in (0, 10_000)]

    def states(self):
        """What Patroni says of each machine's database."""
        told = []
        for machine in self.databases:
            state = "is not answered by Patroni"
            try:
                with urllib.request.urlopen(f"http://{machine.address}:8008/patroni", timeout=1) as answer:
                    found = json.load(answer)
            except urllib.error.HTTPError as error:
                # Patroni answers 503 with the same for a database that does not run.
                try:
                    found = json.load(error)
                except ValueError:
                    found = None
            except (OSError, ValueError):
                found = None
            if found:
                state = f"is {found.get('state', 'unknown')}" + (f" as {found['role']}" if found.get("role") else "")
            told.append(f"{machine.name} {state}")
        return ", ".join(told)

    @staticmethod
    def died(machine, name):
        return None if machine.is_running(name) else f"it has ended. Its last lines:\n{machine.log(name)}"

    def start_etcd(self, machine):
        peers = ",".join(f"{other.name}=http://{other.address}:2380" for other in self.databases)
        machine.start(
            "etcd",
            ["etcd", "--name", machine.name, "--data-dir", machine.directory / "etcd", "--initial-cluster", peers,
             "--initial-cluster-token", "tidemark", "--initial-advertise-peer-urls", f"http://{machine.address}:2380",
             "--listen-peer-urls", f"http://{machine.address}:2380", "--listen-client-urls", f"http://{machine.address}:2379",
             "--advertise-client-urls", f"http://{machine.address}:2379", "--heartbeat-interval", "300", "--election-timeout", "3000"],
            user=self.user)

    def patroni(self, machine):
        """Patroni's configuration; JSON is YAML."""
        password = self.secrets
        subnet = f"{machine.address.rsplit('.', 1)[0]}.0/24"
        rules = [
            "local all all trust", f"host replication replicator {subnet} scram-sha-256", f"host all all {subnet} scram-sha-256",
            "host all all 127.0.0.1/32 scram-sha-256", "host replication replicator 127.0.0.1/32 scram-sha-256",
        ]
        return {
            "scope": "tidemark", "name": machine.name,
            "restapi": {"listen": f"{machine.address}:8008", "connect_address": f"{machine.address}:8008"},
            "etcd3": {"hosts": [f"{other.address}:2379" for other in self.databases]},
            "bootstrap": {
                "dcs": {
                    "ttl": 20, "loop_wait": 3, "retry_timeout": 5, "maximum_lag_on_failover": 1 << 20,
                    # Patroni does not wait for a primary whose PostgreSQL has died.
                    "master_start_timeout": 0,
                    # A commit is acknowledged once two machines have it.
                    "synchronous_mode": True,
                    "postgresql": {
                        "use_pg_rewind": True, "use_slots": True,
                        "parameters": {"max_connections": 200, "shared_buffers": "256MB", "wal_keep_size": "512MB", "synchronous_commit": "on",
                                       "wal_compression": "lz4"},
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
                "pg_hba": rules,
                "post_bootstrap": str(machine.directory / "bootstrap"),
            },
            "postgresql": {
                "listen": f"{machine.address},127.0.0.1:5432" if self.network.has_namespaces else f"{machine.address}:5432",
                "connect_address": f"{machine.address}:5432", "data_dir": str(machine.directory / "data"), "bin_dir": str(BINARIES),
                # A replica does not wait for the primary's next checkpoint, which takes more than a minute.
                "basebackup": {"checkpoint": "fast"},
                "pgpass": str(machine.directory / "pgpass"), "pg_hba": rules,
                "authentication": {
                    "superuser": {"username": "postgres", "password": password["postgres"]},
                    "replication": {"username": "replicator", "password": password["replicator"]},
                },
                "parameters": {"unix_socket_directories": str(machine.directory)},
            },
        }

    def start_patroni(self, machine):
        # Called once, on the machine that makes the database, with its connection string.
        self.write(
            machine, "bootstrap",
            f"""#!/bin/sh
exec {BINARIES}/psql -v ON_ERROR_STOP=1 "$1" <<'END'
CREATE ROLE {DATABASE} LOGIN PASSWORD '{self.secrets["tidemark"]}';
CREATE DATABASE {DATABASE} OWNER {DATABASE};
END
""", 0o700)
        path = self.write(machine, "patroni.yml", json.dumps(self.patroni(machine), indent=2))
        machine.start("patroni", ["patroni", path], user=self.user)

    def start_bucket(self):
        machine = self["s3"]
        identities = {
            "identities": [{
                "name": "tidemark", "credentials": [{"accessKey": self.secrets["access"], "secretKey": self.secrets["secret"]}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            }]
        }
        path = self.write(machine, "s3.json", json.dumps(identities, indent=2))
        machine.start(
            "weed",
            [self.weed, "server", f"-dir={machine.directory}", f"-ip={machine.address}", f"-ip.bind={machine.address}", "-s3",
             *(f"-{part}.port={port}" for part, port in self.bucket_ports.items()), *bucket_options(self.weed), f"-s3.config={path}", "-master.volumeSizeLimitMB=256", "-volume.max=40"],
            # SeaweedFS writes logs of its own to TMPDIR.
            user=self.user, environment={"TMPDIR": str(machine.directory)})
        self.say("SeaweedFS …")
        wait_until(
            "SeaweedFS", 90, lambda: fetch(f"{self.bucket_endpoint}/") in (200, 403), lambda: self.died(machine, "weed"),
            lambda seconds: self.say(f"  for {seconds} s: SeaweedFS does not answer at {self.bucket_endpoint} yet"))
        wait_until("the bucket", 60, self.make_bucket)

    def make_bucket(self):
        # The credentials come on the standard input: the list of processes shows arguments to everybody.
        made = subprocess.run(
            ["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "-X", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3", "-K", "-",
             f"{self.bucket_endpoint}/{BUCKET}"],
            input=f"user = \"{self.secrets['access']}:{self.secrets['secret']}\"\n", capture_output=True, text=True)
        return made.stdout in ("200", "409")

    def start_proxy(self):
        machine = self["proxy"]
        databases = "\n".join(f"    server {other.name} {other.address}:5432 check port 8008" for other in self.databases)
        servers = "\n".join(f"    server {other.name} {other.address}:8080 check" for other in self.servers)
        secure = ""
        if self.certificate:
            both = self.write(machine, "certificate.pem", "".join(path.read_text() for path in self.certificate))
            secure = f"\n    bind {machine.address}:8443 ssl crt {both}"
        path = self.write(
            machine, "haproxy.cfg",
            f"""global
    maxconn 4000
defaults
    mode tcp
    timeout connect 4s
    timeout client 30m
    timeout server 30m
    timeout check 3s
    retries 2
listen postgresql
    bind {machine.address}:5432
    option httpchk GET /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
{databases}
listen tidemark
    bind {machine.address}:8080{secure}
    mode http
    balance leastconn
    # A head that does not come; the servers look after bodies.
    timeout http-request 10s
    # What clients say of themselves in these is not to be believed.
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
    # While no server is ready, clients are to come again, as a server would say.
    http-error status 503 content-type application/json string '{NONE_READY}' hdr Retry-After 1
    # Without the bucket, records go on.
    option httpchk GET /ready?without=assets
    http-check expect status 200
    option redispatch
    # A request that was sent is the client's to send again: it has a token for that.
    retry-on conn-failure
    default-server inter 1s fall 2 rise 1
{servers}
listen statistics
    bind {machine.address}:8404
    mode http
    stats enable
    stats uri /
""")
        machine.start("haproxy", ["haproxy", "-W", "-db", "-f", path], user=self.user)

    def start_server(self, machine):
        # The temporary files of a killed server are removed with its machine's directory.
        machine.start(
            "server",
            [self.server, *self.place, "--host", machine.address, "--port", "8080", "--trust-proxy", *self.options], user=self.user,
            environment=self.environment | {"TMPDIR": str(machine.directory)})

    @staticmethod
    def is_ready(machine):
        return fetch(f"http://{machine.address}:8080/ready") == 200

    # What is where

    @property
    def url(self):
        """Where servers find the database. The password is in the environment."""
        hosts = ",".join(f"{machine.address}:5432" for machine in self.databases)
        return f"postgresql://{DATABASE}@{hosts}/{DATABASE}?target_session_attrs=read-write&connect_timeout=3"

    @property
    def place(self):
        """The options of `serve` and `admin` that say where the cloud is."""
        return ["--database", self.url, "--assets", f"s3://{BUCKET}", "--s3-endpoint", self.bucket_endpoint]

    @property
    def bucket_endpoint(self):
        return f"http://{self['s3'].address}:{self.bucket_ports['s3']}"

    @property
    def bucket_ports(self):
        return leftovers.bucket_ports(self.directory)

    @property
    def environment(self):
        return {
            "PGPASSWORD": self.secrets["tidemark"], "AWS_ACCESS_KEY_ID": self.secrets["access"],
            "AWS_SECRET_ACCESS_KEY": self.secrets["secret"], "AWS_REGION": "us-east-1",
        }

    def primary(self):
        """The machine whose PostgreSQL takes writes; None while there is none."""
        return next((machine for machine in self.databases if fetch(f"http://{machine.address}:8008/primary", 1) == 200), None)

    def kill_database(self, machine, etcd=False):
        """Kills a machine's PostgreSQL and Patroni, which would start it again, as a loss of power does; with `etcd`, its etcd as well."""
        for name in ["patroni"] + ["etcd"] * etcd:
            machine.kill(name)
        process = self.postgres(machine)
        if process:
            # PostgreSQL is not in Patroni's process group. Its other processes end without the first one.
            leftovers.send(process, signal.SIGKILL)

    @staticmethod
    def postgres(machine):
        """The first process of a machine's PostgreSQL; None where there is none."""
        data = machine.directory / "data"
        try:
            process = int((data / "postmaster.pid").read_text().split()[0])
            # A file that was left behind may name the id of another process.
            return None if pathlib.Path("/proc/self").exists() and os.readlink(f"/proc/{process}/cwd") != str(data) else process
        except (OSError, IndexError, ValueError):
            return None

    def stop_database(self, machine):
        """Asks Patroni to end, which stops PostgreSQL. A PostgreSQL that goes on is stopped after that."""
        machine.stop("patroni")
        process = self.postgres(machine)
        for number in (signal.SIGINT, signal.SIGKILL):
            if not process or not report.is_alive(process):
                return
            leftovers.send(process, number)
            for _ in range(50):
                if not report.is_alive(process):
                    return
                time.sleep(0.1)

    def start_database(self, machine):
        """Starts what ``kill_database`` has killed."""
        if not machine.is_running("etcd"):
            self.start_etcd(machine)
        self.start_patroni(machine)

    def has_synchronous_replica(self):
        return any(fetch(f"http://{machine.address}:8008/synchronous", 1) == 200 for machine in self.databases)

    def report(self):
        return {
            "directory": str(self.directory), "database": self.url, "databaseByProxy": f"postgresql://{DATABASE}@{self['proxy'].address}:5432/{DATABASE}",
            "assets": f"s3://{BUCKET}", "s3Endpoint": self.bucket_endpoint if self.weed else None,
            "cloud": f"http://{self['proxy'].address}:8080" if self.server else None, "proxyStatistics": f"http://{self['proxy'].address}:8404/",
            "primary": getattr(self.primary(), "name", None), "machines": {name: machine.address for name, machine in self.machines.items()},
            "networkNamespaces": self.network.has_namespaces,
            "servers": {machine.name: f"http://{machine.address}:8080" for machine in self.servers if self.server},
            "processes": {name: self.processes(machine) for name, machine in self.machines.items()},
        }

    def processes(self, machine):
        """The processes of a machine, by what they are."""
        found = {name: process.pid for name, process in machine.processes.items() if process.poll() is None}
        postgres = self.postgres(machine)
        return found | ({"postgres": postgres} if postgres and report.is_alive(postgres) else {})

    def end(self, kills=False):
        """Ends all machines; `kills` where nobody needs the data."""
        # Servers end first, since they use all others. Then these end together, except for etcd, which Patroni uses.
        databases = [machine for name, machine in self.machines.items() if name.startswith("db") and self.has_begun]
        others = [self.machines[name] for name in ("proxy", "s3") if name in self.machines]

        def end_other(machine):
            if machine in others:
                # SeaweedFS takes half a minute to end, and keeps what it has acknowledged when it is killed.
                machine.end(kills, within=5)
            elif kills:
                self.kill_database(machine, etcd=True)
            else:
                self.stop_database(machine)

        together(lambda machine: machine.end(kills), self.servers)
        together(end_other, databases + others)
        # An etcd that loses the others while it ends waits for them, so they end one after the other.
        for machine in self.machines.values():
            machine.end(kills)
        self.network.end()
        if self.machines.get("s3") and self.machines["s3"].log("weed", 1):
            leftovers.remove_sockets(self.directory)


def add_account(cluster, tidemark, directory):
    """Makes a container and an account in the cloud, unless they are there; says what they are."""
    password = directory / "password"
    if not password.exists():
        password.write_text(secrets.token_urlsafe(12) + "\n")
        password.chmod(0o600)
        for words in [("container", "add", CONTAINER), ("account", "add", EMAIL, "--name", "Anna Berg", "--password-stdin")]:
            ended = subprocess.run(
                [str(tidemark), "admin", *words, *cluster.place], input=password.read_text(), capture_output=True, text=True,
                env=os.environ | cluster.environment)
            if ended.returncode:
                password.unlink()
                raise ClusterError(f"tidemark admin {' '.join(words)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return {"container": CONTAINER, "email": EMAIL, "passwordFile": str(password)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=pathlib.Path, help="where the data lies; a temporary directory that is removed, if not given")
    parser.add_argument("--server", type=pathlib.Path, help="the program tidemark-server; none runs without it")
    parser.add_argument("--tidemark", type=pathlib.Path, help="the program tidemark; with it a container and an account are made")
    parser.add_argument("--servers", type=int, default=3, help="how many servers run (3)")
    parser.add_argument("--loopback", action="store_true", help="use loopback addresses also where network namespaces can be made")
    parser.add_argument("--json", action="store_true", help="say where things are as JSON")
    parser.add_argument("--end", action="store_true", help="end what a run has left in network namespaces that was killed, and run nothing")
    options = parser.parse_args()
    try:
        if options.end:
            return leftovers.end(tell)
        INTERRUPTION.listen()
        run_cluster(options)
    except ClusterError as error:
        tell(f"cluster: {error}")
        sys.exit(69)
    except Interrupted:
        sys.exit(128 + INTERRUPTION.signal)


def program(path, option):
    """A program that an option names, as a whole path; None where it names none."""
    if path is None:
        return None
    if not path.is_file():
        raise ClusterError(f"{option} names {path}, which is not there: 'make build server' makes the programs, in .build/release")
    return path.resolve()


def run_cluster(options):
    server, tidemark = program(options.server, "--server"), program(options.tidemark, "--tidemark")
    directory = (options.directory or pathlib.Path(tempfile.mkdtemp(prefix=leftovers.TEMPORARY))).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # The user of the databases has to pass through the directory.
        directory.chmod(0o755)
    except OSError as error:
        raise ClusterError(f"{directory} can't be the cluster's directory: {error.strerror}. Name another one by --directory") from error
    cluster, is_ready = None, False
    try:
        with INTERRUPTION.waiting():
            install_missing(tell)
            os.environ["PATH"] += ":/usr/sbin:/sbin"
            weed = find_weed(directory)
        cluster = Cluster(directory, server, options.servers, weed, False if options.loopback else None, tell)
        cluster.start()
        found = cluster.report()
        if tidemark:
            with INTERRUPTION.waiting():
                found |= add_account(cluster, tidemark, directory)
        if options.json:
            print(json.dumps(found | {"environment": cluster.environment}), flush=True)
        else:
            environment = report.write_environment(cluster, directory)
            print(report.text(cluster, found, environment, options.tidemark), flush=True)
        is_ready = True
        watch = report.Watch(cluster, tell)
        with INTERRUPTION.waiting():
            while True:
                watch.look()
                time.sleep(1)
    except Interrupted:
        if not is_ready:
            raise
    except ClusterError as error:
        tell(f"cluster: {error}")
        sys.exit(69)
    finally:
        if cluster:
            if cluster.has_begun:
                tell("Ending …")
            cluster.end(kills=not options.directory)
        if not options.directory:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
