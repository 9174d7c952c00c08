#!/usr/bin/env python3
"""Runs the drivers against a server that is started for them, over a directory or a database, or against a cluster, whose database may fail
over meanwhile. Fails when a driver fails, when a server falls, or when a log has a secret."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import requests

import patience
import places
import start_server
import steps

HERE = pathlib.Path(__file__).resolve().parent
OPENAPI = HERE.parent.parent / "Documentation" / "Formats" / "openapi.json"
CASES = 2_000
# The client's checks of certificates, and its own upload, are only used over TLS.
DRIVERS = {"pyicloud": True, "signed": False, "browser": False, "hostile": False, "schemathesis": False}
PROGRAMS = {"pyicloud": "pyicloud_driver.py", "signed": "signed_client.py", "browser": "browser_flow.py", "hostile": "hostile.py"}
# The number of lines after which a driver is halfway.
HALF = {"pyicloud": 20, "signed": 8, "browser": 10, "hostile": 50}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server")
    parser.add_argument("--folder", required=True, type=lambda path: pathlib.Path(path).resolve(), help="where clouds, logs and reports go; emptied first")
    parser.add_argument("--only", default=",".join(DRIVERS), help="some of " + ", ".join(DRIVERS))
    parser.add_argument("--plain", action="store_true", help="nothing over TLS")
    parser.add_argument("--place", choices=places.PLACES, default="directory", help="where the cloud is (directory)")
    parser.add_argument("--fail-over", action="store_true", help="with --place cluster, kill the primary of the database in the middle of each driver")
    parser.add_argument("--seed", type=int, default=1, help="of schemathesis (1)")
    options = parser.parse_args()
    if options.fail_over and options.place != "cluster":
        parser.error("--fail-over needs --place cluster")
    return options


def run_program(command, before_half, half):
    """Runs a driver; `before_half` is called when it has printed `half` lines. Returns whether it succeeds."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    for number, line in enumerate(process.stdout, 1):
        print(line, end="", flush=True)
        if number == half and before_half:
            before_half()
    return process.wait() == 0


def drive(name, credentials, options, folder, fail_over):
    """Returns whether a driver succeeds. An action may be run halfway."""
    if name == "schemathesis":
        timer = threading.Timer(8, fail_over) if fail_over else None
        if timer:
            timer.start()
        try:
            return run_schemathesis(credentials, options, folder)
        finally:
            if timer:
                timer.join()
    return run_program([sys.executable, HERE / PROGRAMS[name], "--credentials", credentials], fail_over, HALF[name])


def run_schemathesis(credentials, options, folder):
    """2,000 cases and more: each answer has a status, a type and a form that the description has for it, and none is a 5xx."""
    given = json.loads(credentials.read_text())
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {given['accounts']['anna']['token']}"}
    session = requests.Session()
    base = f"{given['url']}/database/1/{given['container']}/development/private"
    for path, body in (("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "schemathesis"}}}]}),
                       ("/records/modify", {"zoneID": {"zoneName": "schemathesis"}, "operations": [{"operationType": "create", "record": {
                           "recordName": name, "recordType": "Place", "fields": {"name": {"value": name}, "rank": {"value": 1}, "moment": {"value": 1763712000123, "type": "TIMESTAMP"}}}}
                           for name in ("first", "second", "third")]})):
        answer = session.post(base + path, json=body, headers=headers)
        if answer.status_code != 200 or "serverErrorCode" in answer.text:
            sys.exit(f"{path}: {answer.status_code} {answer.text[:500]}")
    steps.index(given, "Place", "recordName", "name", "rank", "moment")
    answer = session.post(f"{given['url']}/tidemark/1/{given['container']}/development/private/shares/create", headers=headers, json={
        "zoneID": {"zoneName": "schemathesis"}, "title": "All of it", "publicPermission": "READ_ONLY"})
    if answer.status_code != 200:
        sys.exit(f"shares/create: {answer.status_code} {answer.text[:500]}")
    # Every operation equally often, except those that wait for an event that never happens, and the one that would end the session in use.
    command = [pathlib.Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml", "run", OPENAPI, "--url", given["url"], "--phases", "fuzzing",
               "--max-examples", "46", "--seed", str(options.seed), "--max-failures", "40", "--generation-with-security-parameters", "false", "--suppress-health-check", "all", "--warnings", "off", "--no-color",
               "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance", "--request-timeout", "30",
               "-H", f"Authorization: {headers['Authorization']}", "--report", "ndjson", "--report-ndjson-path", folder / "schemathesis.ndjson"]
    for operation in ("tidemark.notifications", "courier", "session.end"):
        command += ["--exclude-operation-id", operation]
    environment = os.environ | {"TIDEMARK_CONTAINER": given["container"], "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE)}
    began = time.monotonic()
    ended = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, cwd=folder)
    (folder / "schemathesis.txt").write_text(ended.stdout + ended.stderr)
    cases = re.search(r"(\d+) generated", ended.stdout)
    count = int(cases.group(1)) if cases else 0
    print(f"schemathesis: {count:,} cases in {time.monotonic() - began:.0f} s", flush=True)
    if ended.returncode != 0:
        print("\n".join((ended.stdout + ended.stderr).splitlines()[:400]))
    if count < CASES:
        print(f"schemathesis: fewer than {CASES:,} cases")
    return ended.returncode == 0 and count >= CASES


def secrets(credentials):
    given = json.loads(credentials.read_text())
    yield from (account[key] for account in given["accounts"].values() for key in ("password", "token"))
    yield from (given[key] for key in ("apiToken", "popupAPIToken", "foreignAPIToken", "revokedAPIToken", "foreignToken"))


def main():
    options = parse_arguments()
    shutil.rmtree(options.folder, ignore_errors=True)
    try:
        failed = [name for name in options.only.split(",") if not run(name, options)]
    except places.ClusterError as error:
        sys.exit(f"NOT OK the cluster: {error}")
    print(f"failed: {', '.join(failed)}; see {options.folder}" if failed else "all is well")
    sys.exit(1 if failed else 0)


def run(name, options):
    """Returns whether a driver succeeds at a cloud of its own, and the cloud's servers as well."""
    folder = options.folder / name
    print(f"== {name}, over {places.PLACES[options.place].name}", flush=True)
    place = places.PLACES[options.place](options, folder)
    try:
        # A container is made before the server, which would not start over a directory without one.
        given = start_server.fill(place.cloud) if not options.place == "cluster" else None
        server = place.serve(*start_server.UNLIMITED, tls=DRIVERS[name] and not options.plain)
        given = given or start_server.fill(place.cloud)
        given |= {"pids": place.pids, "folders": list(map(str, place.folders)), "variables": place.cloud.added, "isProxied": options.place == "cluster"}
        credentials = start_server.enter(server, place.cloud, given)
        if options.fail_over:
            os.environ[patience.VARIABLE] = str(folder / "put-off")
        wrong = [] if drive(name, credentials, options, folder, place.fail_over if options.fail_over else None) else [f"{name} has failed"]
        if options.fail_over:
            print(place.failed_over(), flush=True)
            if not patience.was_needed(folder / "put-off"):
                wrong.append(f"{name} has not noticed that the cloud failed over: no answer was 503")
        fallen = place.fell()
        codes = place.stop()
        ended = fallen or [f"a server ended with {code}" for code in codes if code != 0]
        wrong += ended
        for log in place.logs():
            text = log.read_text(errors="replace")
            if any(secret in text for secret in secrets(credentials)):
                wrong.append(f"a server's log has a secret: {log}")
            if ended:
                print(f"{log}: {text[-2000:]}")
    finally:
        place.end()
    for what in wrong:
        print(f"NOT OK {what}")
    return not wrong


if __name__ == "__main__":
    main()
