"""What other runs of a cluster have on this computer: processes in the network namespaces, listening processes, files in /tmp."""

import errno
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import zlib

from nodes import BRIDGE, ClusterError

TEMPORARY = "tidemark-cluster-"
# The file of a directory that has the passwords and keys of the data in it.
KEPT = "cluster.json"


def bucket_ports(directory):
    """Ports of SeaweedFS's parts. Each cluster has its own, since the sockets in /tmp are named after them, in whichever network namespace."""
    first = 10_000 + zlib.crc32(str(directory).encode()) % 2_000 * 4
    return {part: first + number for number, part in enumerate(("s3", "master", "volume", "filer"))}


def remove_sockets(directory):
    """Removes the sockets that SeaweedFS leaves in /tmp."""
    for part, port in bucket_ports(directory).items():
        for name in (f"{part}-{port}", f"{part}-grpc-{port + 10_000}"):
            pathlib.Path(f"/tmp/seaweedfs-{name}.sock").unlink(missing_ok=True)


# Network namespaces


def namespaces():
    """The network namespaces of machines, by their names, with the processes in each."""
    listed = subprocess.run(["ip", "-brief", "netns", "list"], capture_output=True, text=True).stdout.split()
    return {
        name: [int(process) for process in subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()]
        for name in listed if name.startswith("tm-") and not name.startswith("tm-probe-")
    }


def remove_empty():
    """Removes the namespaces and the bridge of a cluster that has ended without doing so."""
    found = namespaces()
    running = {name: processes for name, processes in found.items() if processes}
    if running:
        processes = "; ".join(f"{name}: {' '.join(map(str, processes))}" for name, processes in running.items())
        owner = find_owner(running)
        remedy = (
            f"Process {owner} runs it: end that first, by Ctrl-C or 'kill {owner}'" if owner
            else f"Its own program was killed: end what is left by '{__file__.replace('leftovers', 'cluster')} --end'")
        raise ClusterError(f"another cluster has processes in network namespaces ({processes}). {remedy}")
    for name in found:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", name[:15]], capture_output=True)
    if pathlib.Path(f"/sys/class/net/{BRIDGE}").exists():
        subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)


def find_owner(running):
    """The Python program that runs a cluster: the parent of its processes; None once that was killed."""
    inside = {process for processes in running.values() for process in processes}
    for process in sorted(inside):
        parent = parent_of(process)
        try:
            if parent and parent > 1 and parent not in inside and "python" in os.readlink(f"/proc/{parent}/exe"):
                return parent
        except OSError:
            continue
    return None


def end(say, within=20):
    """Ends what a killed run has left in network namespaces, and removes these, its temporary directory and its sockets."""
    if not shutil.which("ip") or os.geteuid() != 0:
        raise ClusterError("only root on Linux has clusters in network namespaces: run this as root. Those on loopback addresses are ended by their processes' ids")
    found = namespaces()
    running = {name: processes for name, processes in found.items() if processes}
    owner = find_owner(running)
    if owner:
        raise ClusterError(f"process {owner} runs this cluster: end that, by Ctrl-C or 'kill {owner}'")
    directories = {directory for name, processes in running.items() for process in processes if (directory := directory_of(process, name))}
    deadline = time.monotonic() + within
    asked, stops_databases = set(), False
    while True:
        left = {process for processes in namespaces().values() for process in processes}
        if not left:
            break
        is_late = time.monotonic() > deadline
        for process in left if is_late else left - asked:
            # Patroni stops PostgreSQL, which would take the end of one of its processes for a crash.
            if is_late or name_of(process) != "postgres":
                send(process, signal.SIGKILL if is_late else signal.SIGTERM)
        asked |= left
        if not stops_databases and all(name_of(process) == "postgres" for process in left):
            # Patroni is gone. The first process of each machine's PostgreSQL is asked, and ends the others.
            stops_databases = True
            for process in left:
                if parent_of(process) not in left:
                    send(process, signal.SIGINT)
        time.sleep(0.2)
    remove_empty()
    for directory in directories:
        remove_sockets(directory)
        if directory.name.startswith(TEMPORARY) and directory.parent == pathlib.Path(tempfile.gettempdir()):
            shutil.rmtree(directory, ignore_errors=True)
    count = sum(map(len, running.values()))
    say(f"ended {count} processes of {len(running)} machines" if count else "nothing was left" if not found else "removed network namespaces without processes")


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def parent_of(process):
    try:
        return int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def name_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return None


def directory_of(process, namespace):
    """The directory of a process's cluster: the process works in the directory of its machine, or below it."""
    try:
        folder = pathlib.Path(os.readlink(f"/proc/{process}/cwd"))
    except OSError:
        return None
    return next((parent.parent for parent in (folder, *folder.parents) if f"tm-{parent.name}" == namespace and (parent.parent / KEPT).exists()), None)


# Loopback addresses


def check_free(places):
    """Makes sure that nothing listens at any of these addresses and ports."""
    taken = []
    for name, address, port in places:
        with socket.socket() as probe:
            # As servers do: an address in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                probe.listen(1)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise ClusterError(f"{name} can't have the address {address}: {error.strerror}. On macOS: sudo ifconfig lo0 alias {address}") from error
                taken.append((address, port))
    if taken:
        processes = sorted({process for process in map(listener, taken) if process})
        named = f", by the processes {' '.join(f'{process} ({name_of(process)})' for process in processes)}" if processes else ""
        ports = ", ".join(f"{address}:{port}" for address, port in taken[:3]) + (f" and {len(taken) - 3} more" if len(taken) > 3 else "")
        owner = find_owner({"": processes})
        remedy = (
            f"Process {owner} runs another cluster: end that first, by Ctrl-C or 'kill {owner}'" if owner
            else "A killed run may have left them, or another program uses them: end that first")
        raise ClusterError(f"{ports} are in use{named}. {remedy}")


def listener(place):
    """The process that listens at an address; None where that can't be found out."""
    address, port = place
    local = f"{int.from_bytes(socket.inet_aton(address), 'little'):08X}:{port:04X}"
    try:
        lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    except OSError:
        return None
    inode = next((fields[9] for fields in lines if fields[1] in (local, f"00000000:{port:04X}") and fields[3] == "0A"), None)
    if inode is None:
        return None
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(file) == f"socket:[{inode}]" for file in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue
    return None
