#!/usr/bin/env python3
"""Runs the drivers against a server that is started for them. Fails when one fails, when the server falls, or when its log has a secret."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import requests

import start_server
import steps

HERE = pathlib.Path(__file__).resolve().parent
OPENAPI = HERE.parent.parent / "Documentation" / "Formats" / "openapi.json"
CASES = 2_000
# Whether the client's checks of certificates and its own upload work is only seen over TLS.
DRIVERS = {"pyicloud": True, "signed": False, "browser": False, "hostile": False, "schemathesis": False}
PROGRAMS = {"pyicloud": "pyicloud_driver.py", "signed": "signed_client.py", "browser": "browser_flow.py", "hostile": "hostile.py"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server")
    parser.add_argument("--folder", required=True, type=lambda path: pathlib.Path(path).resolve(), help="where clouds, logs and reports go; emptied first")
    parser.add_argument("--only", default=",".join(DRIVERS), help="some of " + ", ".join(DRIVERS))
    parser.add_argument("--plain", action="store_true", help="nothing over TLS")
    parser.add_argument("--seed", type=int, default=1, help="of schemathesis (1)")
    return parser.parse_args()


def drive(name, credentials, options, folder):
    """Whether a driver ends well."""
    if name == "schemathesis":
        return run_schemathesis(credentials, options, folder)
    return subprocess.run([sys.executable, HERE / PROGRAMS[name], "--credentials", credentials]).returncode == 0


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
    # Every operation as often; those that wait for what never happens are left out. Sessions that are ended are others'.
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
    failed = []
    for name in options.only.split(","):
        print(f"== {name}", flush=True)
        folder = options.folder / name
        server, credentials = start_server.start(options.tidemark, options.server, folder, *start_server.UNLIMITED, tls=DRIVERS[name] and not options.plain)
        try:
            well = drive(name, credentials, options, folder)
        finally:
            fell = server.process.poll()
            code = server.stop()
        if fell is not None or code != 0:
            print(f"NOT OK the server {'fell' if fell is not None else 'ended'} with {code}: {server.log.read_text()[-2000:]}")
            well = False
        log = server.log.read_text(errors="replace")
        for secret in secrets(credentials):
            if secret in log:
                print(f"NOT OK the server's log has a secret: {server.log}")
                well = False
        if not well:
            failed.append(name)
    print(f"failed: {', '.join(failed)}; see {options.folder}" if failed else "all is well")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
