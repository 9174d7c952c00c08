"""What a person is told of a cluster that runs: where things are, what to type next, and what has ended."""

import os
import pathlib
import shlex

PROGRAMS = {"server": "server", "haproxy": "HAProxy", "weed": "SeaweedFS", "etcd": "etcd", "patroni": "Patroni", "postgres": "PostgreSQL"}


def is_alive(process):
    """Tells whether a process runs. A zombie, which has ended and for which nobody has waited, does not run."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def write_environment(cluster, directory):
    """Writes the file that a shell reads to reach the database, the bucket and the cloud, for its owner alone."""
    place = {"TIDEMARK_DATABASE": cluster.url, "TIDEMARK_ASSETS": cluster.place[3], "TIDEMARK_S3_ENDPOINT": cluster.bucket_endpoint}
    path = directory / "environment"
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in (cluster.environment | place).items())
    return path


def machines(cluster, found):
    """A line for each machine: its addresses and its processes."""
    bucket = f"http://{cluster['s3'].address}:{cluster.bucket_ports['s3']}" if cluster.weed else "nothing"
    lines = []
    for name, address in found["machines"].items():
        if name.startswith("db"):
            where = f"{address}:5432" + (", the primary" if name == found["primary"] else "")
        elif name == "s3":
            where = bucket
        elif name == "proxy":
            where = f"{address}:8080 and :5432"
        else:
            where = f"http://{address}:8080"
        processes = sorted(found["processes"][name].items(), key=lambda entry: entry[0] != "postgres")
        lines.append(f"  {name:<9}{where:<31}" + ", ".join(f"{PROGRAMS[program]} {process}" for program, process in processes))
    return "\n".join(lines)


def commands(found, environment, tidemark):
    """What a person types next, in another terminal, in the folder in which the cluster was started."""
    tool = shlex.quote(str(tidemark))
    if "/" not in tool:
        tool = f"./{tool}"
    examples = pathlib.Path(__file__).resolve().parent.parent.parent / "Examples" / "journal" / "journal.jsonl"
    journal = shlex.quote(str(examples.relative_to(pathlib.Path.cwd()) if examples.is_relative_to(pathlib.Path.cwd()) else examples))

    def sign_in(container):
        return (
            f"{tool} account sign-in {container} --server {found['cloud']} --insecure-http \\\n"
            f"      --email {found['email']} --container {found['container']} --password-stdin < {shlex.quote(found['passwordFile'])}")

    return f"""
To try it, in another terminal, in this folder:

  . {shlex.quote(str(environment))}
  {sign_in('a1.tidemark')}
  {tool} import {journal} --into a1.tidemark --type Destination --id id --asset image --sync
  {sign_in('a2.tidemark')}
  {tool} sync a2.tidemark
  {tool} admin account list
"""


def text(cluster, found, environment, tidemark):
    """All that is said once the cluster runs. `tidemark` is the tool, as it was named; None where no account was made."""

    account = f"""
  a container    {found['container']}
  an account     {found['email']}, its password in {found['passwordFile']}""" if tidemark else ""
    shown = commands(found, environment, tidemark) if tidemark and found["cloud"] else ""
    return f"""
The cloud        {found['cloud'] or 'no server runs: give --server'}{account}
The database     {found['database']}
  by the proxy   {found['databaseByProxy']}
The bucket       {found['assets']} at {found['s3Endpoint']}
The proxy        {found['proxyStatistics']} has what it knows of the servers and databases. Two of three databases are
                 DOWN there: they are replicas, and it looks for the primary
Passwords        . {environment}
Logs             {cluster.directory}/MACHINE/*.log

Machines, with the ids of their processes
{machines(cluster, found)}
{shown}
Kill what you like. A server that was killed is not started again. PostgreSQL is started again by Patroni, as another process, and a
replica takes over where it was the primary: this program says so.

Ctrl-C ends all of it."""


class Watch:
    """Says which parts of a cluster have ended, and which database is the primary."""

    def __init__(self, cluster, say):
        self.cluster, self.say, self.ended = cluster, say, set()
        self.databases = {machine.name: cluster.processes(machine).get("postgres") for machine in cluster.databases}
        self.running = {name for name, process in self.databases.items() if process}
        self.primary = getattr(cluster.primary(), "name", None)

    def look(self):
        """Looks once."""
        for machine in self.cluster.machines.values():
            for name, process in machine.processes.items():
                if process.poll() is not None and process.pid not in self.ended:
                    self.ended.add(process.pid)
                    self.say(
                        f"{machine.name}: {PROGRAMS[name]} (process {process.pid}) has ended, with {process.returncode}; it is not started again. "
                        f"Its log: {machine.directory}/{name}.log")
        for machine in self.cluster.databases:
            self.look_at_database(machine)
        primary = getattr(self.cluster.primary(), "name", None)
        if primary and primary != self.primary:
            self.say(f"The primary is {primary}" + (f"; it was {self.primary}" if self.primary else ""))
            self.primary = primary

    def look_at_database(self, machine):
        name, before = machine.name, self.databases[machine.name]
        now = self.cluster.processes(machine).get("postgres")
        if name in self.running and now != before:
            self.running.discard(name)
            remedy = "Patroni starts it again" if machine.is_running("patroni") else "nothing starts it again"
            self.say(f"{name}: PostgreSQL (process {before}) has ended; {remedy}")
        if now and name not in self.running:
            self.running.add(name)
            self.databases[name] = now
            self.say(f"{name}: PostgreSQL runs again, as process {now}")
