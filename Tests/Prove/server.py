#!/usr/bin/env python3
"""Kills a server with SIGKILL under many writes, again and again, and checks that no acknowledged write is lost.

Writers send atomic batches that create, change and delete their own records, and record what the server acknowledges, with tags. One writer sends
assets in pieces. A batch without an answer is sent again with the same client token until it is answered, and the answer must be as if it had been
done once. After each start the records acknowledged since the last kill are looked up and compared, and at the end all of them. Then the zone's
changes must have these records and no others, the assets must come back as they were sent, and SQLite must find its files whole.
"""

import argparse
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import threading
import time

import killing
from acknowledged import BASE, ZONE, Acknowledged, Link, Sender, Writer, Wrong, all_changes, check_assets, compare
from killing import fail

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))
import signals  # noqa: E402
import start_server  # noqa: E402

def check_files(data):
    for path in sorted(data.rglob("*.sqlite")):
        with sqlite3.connect(path) as database:
            found = database.execute("PRAGMA integrity_check").fetchall()
        if found != [("ok",)]:
            raise Wrong(f"{path}: {found[:3]}")


def run(options, folder, drawn):
    cloud = start_server.Cloud(options.tidemark, folder)
    cloud.add_container(start_server.CONTAINER)
    account = cloud.add_account("anna")
    server = start_server.Server(options.server, folder, cloud.data, *start_server.UNLIMITED, "--log-level", "warning")
    try:
        prove(options, folder, drawn, cloud, account, server)
    finally:
        if options.now is not None and options.now.process.poll() is None:
            options.now.kill()


def prove(options, folder, drawn, cloud, account, server):
    options.now, port, pause, acknowledged = server, server.port, threading.Event(), Acknowledged()
    token = server.sign_in(account)["token"]
    link = Link(port, token)
    link.post(BASE + "/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": ZONE}}]})
    writers = [Writer(f"w{number}", Link(port, token), drawn.getrandbits(64), options, acknowledged, pause) for number in range(options.writers)]
    writers.append(Sender("assets", Link(port, token), drawn.getrandbits(64), options, acknowledged, pause))
    pause.set()
    for writer in writers:
        writer.start()
    began, starting = time.monotonic(), []

    def look_at_writers():
        for writer in writers:
            if writer.error is not None:
                raise Wrong(f"{writer.name}: {writer.error}") from writer.error

    for kill in range(1, options.kills + 1):
        time.sleep(drawn.uniform(0.02, options.longest))
        look_at_writers()
        if server.process.poll() is not None:
            raise Wrong(f"the server fell by itself: {server.process.returncode}")
        server.kill()
        pause.clear()
        link.close()
        moment = time.monotonic()
        options.now = server = start_server.Server(options.server, folder, cloud.data, *start_server.UNLIMITED, "--log-level", "warning", port=port)
        starting.append(time.monotonic() - moment)
        compared = compare(link, acknowledged.take_fresh(), {name: number for writer in writers for name, number in writer.pending.items()})
        pause.set()
        if kill % 10 == 0 or kill == options.kills:
            print(f"{kill} kills: {acknowledged.batches:,} batches, {acknowledged.repeated} sent again, {len(acknowledged.records):,} records; {compared:,} compared", flush=True)
    # Batches without an answer are sent again, and must be answered.
    for writer in writers:
        writer.is_over = True
    for writer in writers:
        writer.join(120)
        if writer.is_alive():
            raise Wrong(f"{writer.name} gets no answer")
    look_at_writers()
    compared = compare(link, acknowledged.records, {})
    alive, found = {name: value for name, value in acknowledged.records.items() if value is not None}, all_changes(link)
    if found != alive:
        strange = sorted(set(found.items()) ^ set(alive.items()))
        raise Wrong(f"the zone has {len(found):,} records, {len(alive):,} were acknowledged; the first that differ: {strange[:5]}")
    assets = check_assets(link, acknowledged, options.assets)
    link.close()
    if server.stop() != 0:
        raise Wrong(f"the server ended with {server.process.returncode}")
    check_files(cloud.data)
    print(f"{options.kills} kills in {time.monotonic() - began:.0f} s: {acknowledged.batches:,} batches acknowledged, {acknowledged.repeated} of them sent again and done once; "
          f"{compared:,} records as acknowledged, {assets} assets; a start took {sum(starting) / len(starting):.2f} s, {max(starting):.2f} at the most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server")
    parser.add_argument("--kills", type=int, default=100, help="how often to kill (100)")
    parser.add_argument("--writers", type=int, default=4, help="how many write at once, and one more sends assets (4)")
    parser.add_argument("--batch", type=int, default=50, help="operations of a batch (50)")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds until a kill, at the most (1)")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--seed", type=int, help="draws the same moments again")
    options = parser.parse_args()
    signals.end_in_order()
    options.assets, options.now = {}, None
    seed, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-server-", dir=options.folder))
    try:
        run(options, folder, drawn)
    except Wrong as error:
        log = folder / "server.log"
        fail(f"{error} (seed {seed})\n{log.read_text(errors='replace')[-2000:] if log.exists() else ''}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
