#!/usr/bin/env python3
"""Starts a server over a fresh cloud, with two containers, two accounts, tokens and keys, and writes down how to come in.

As a program, it runs the server until it is told to end; `server.json` in the folder is what the drivers take as --credentials.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import ssl

import signals

CONTAINER, FOREIGN = "iCloud.org.example.journal", "iCloud.org.example.other"
CALLBACK, ORIGIN = "http://127.0.0.1:9/signed-in", "http://127.0.0.1:9"
PASSWORDS = {"anna": "correct horse battery staple", "ben": "a second password"}


def free_port():
    """A port on which no program listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Cloud:
    """A cloud, and the commands of `tidemark admin` on it: in a directory, or at the place that the options `place` name."""

    def __init__(self, tidemark, folder, place=None, environment=None):
        self.tidemark, self.folder, self.data = tidemark, folder, folder / "data"
        # Additional environment variables of commands and servers.
        self.added = environment or {}
        self.place, self.environment = place or ["--data", self.data], os.environ | self.added

    def admin(self, *arguments, given=None):
        command = [str(self.tidemark), "admin", *map(str, arguments), *map(str, self.place)]
        ended = subprocess.run(command, input=given, capture_output=True, text=True, env=self.environment)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout.strip()

    def add_container(self, name):
        self.admin("container", "add", name)

    def add_account(self, name):
        email = f"{name}@example.org"
        password = PASSWORDS.get(name, f"a password of {name}")
        self.admin("account", "add", email, "--name", f"{name.title()} Berg", "--password-stdin", given=password + "\n")
        return {"email": email, "password": password}

    def add_token(self, name, container=CONTAINER, popup=False):
        """The token's text, and its identifier."""
        where = ["--popup", ORIGIN, "--origin", ORIGIN] if popup else ["--callback", CALLBACK]
        made = json.loads(self.admin("token", "add", "--container", container, "--name", name, *where, "--json"))
        return made["token"], made["id"]

    def add_key(self, name, container=CONTAINER):
        private, public = self.folder / f"{name}.pem", self.folder / f"{name}.public.pem"
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private], check=True)
        subprocess.run(["openssl", "ec", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
        made = json.loads(self.admin("key", "add", "--container", container, "--name", name, "--public-key", public, "--json"))
        return {"id": made["id"], "privateKey": str(private)}


def post(url, body, headers=None, certificate=None):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"} | (headers or {}))
    context = ssl.create_default_context(cafile=certificate) if certificate else None
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return json.load(answer)


def sign_in(url, account, container=CONTAINER, certificate=None):
    """A device's session of an account."""
    return post(f"{url}/tidemark/1/{container}/development/session", {"email": account["email"], "password": account["password"]}, None, certificate)


class Server:
    """A running server, on any free port."""

    def __init__(self, program, folder, place, *options, certificate=None, port=0, environment=None):
        """`place` is a cloud's directory, or the options that name the cloud's place."""
        self.folder, self.port_file, self.log = folder, folder / "port", folder / "server.log"
        self.port_file.unlink(missing_ok=True)
        where = place if isinstance(place, list) else ["--data", place]
        command = [str(program), *map(str, where), "--port", str(port), "--port-file", str(self.port_file), *options]
        if certificate:
            command += ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])]
        self.certificate = certificate and str(certificate[0])
        self.process = subprocess.Popen(command, stdout=open(self.log, "a"), stderr=subprocess.STDOUT, env=os.environ | (environment or {}) | {"SWIFT_BACKTRACE": "enable=no"})
        signals.kill_at_exit(self.process)
        self.port = self.wait_for_port()
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"

    def wait_for_port(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is not None:
                sys.exit(f"the server ended with {self.process.returncode}: {self.log.read_text()[-3000:]}")
            text = self.port_file.read_text().strip() if self.port_file.exists() else ""
            if text:
                return int(text)
            time.sleep(0.005)
        sys.exit(f"the server does not listen: {self.log.read_text()[-3000:]}")

    def post(self, path, body, headers=None):
        return post(self.url + path, body, headers, self.certificate)

    def sign_in(self, account, container=CONTAINER):
        """A device's session of an account."""
        return sign_in(self.url, account, container, self.certificate)

    def stop(self, within=40):
        """Asks the server to end; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                sys.exit(f"the server does not end: {self.log.read_text()[-2000:]}")
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()


def make_certificate(folder, address="127.0.0.1"):
    """A certificate that only clients with this file trust."""
    certificate, key = folder / "certificate.pem", folder / "certificate.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                    "-addext", f"subjectAltName=IP:{address},DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def start(tidemark, program, folder, *options, tls=False):
    """A server over a fresh cloud in a directory, and the credentials."""
    folder.mkdir(parents=True, exist_ok=True)
    cloud = Cloud(tidemark, folder)
    given = fill(cloud)
    server = Server(program, folder, cloud.data, *options, certificate=make_certificate(folder) if tls else None)
    given |= {"pids": [server.process.pid], "folders": [str(cloud.data)]}
    return server, enter(server, cloud, given)


def fill(cloud):
    """Makes containers, accounts, tokens and keys in a cloud, and returns them."""
    cloud.add_container(CONTAINER)
    cloud.add_container(FOREIGN)
    accounts = {name: cloud.add_account(name) for name in PASSWORDS}
    given = {"tidemark": str(cloud.tidemark), "data": str(cloud.data), "place": list(map(str, cloud.place)), "container": CONTAINER,
             "environment": "development", "foreignContainer": FOREIGN, "callback": CALLBACK, "origin": ORIGIN, "accounts": accounts}
    given["apiToken"], _ = cloud.add_token("Web")
    given["popupAPIToken"], _ = cloud.add_token("Popup", popup=True)
    given["foreignAPIToken"], _ = cloud.add_token("Other", container=FOREIGN)
    given["revokedAPIToken"], revoked = cloud.add_token("Revoked")
    cloud.admin("token", "revoke", revoked)
    given["key"], given["foreignKey"], given["revokedKey"] = cloud.add_key("signer"), cloud.add_key("foreign", FOREIGN), cloud.add_key("revoked")
    cloud.admin("key", "revoke", given["revokedKey"]["id"])
    return given


def enter(server, cloud, given):
    """Signs in at a server, and writes the credentials to a file."""
    given |= {"url": server.url}
    if server.certificate:
        given["certificate"] = server.certificate
    for account in given["accounts"].values():
        session = server.sign_in(account)
        account |= {"token": session["token"], "userRecordName": session["userRecordName"]}
    given["foreignToken"] = server.sign_in(given["accounts"]["anna"], FOREIGN)["token"]
    path = cloud.folder / "server.json"
    path.write_text(json.dumps(given, indent=1))
    path.chmod(0o600)
    return path


# The tests send more requests a minute than people do.
UNLIMITED = ["--request-rate", "0", "--sign-in-attempts", "0", "--connections-of-address", "0"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=pathlib.Path, help="the command-line tool")
    parser.add_argument("--server", required=True, type=pathlib.Path, help="the server")
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="an empty or new folder for the cloud and the credentials")
    parser.add_argument("--tls", action="store_true", help="serves over TLS, with a certificate of its own")
    options = parser.parse_args()
    server, credentials = start(options.tidemark.resolve(), options.server.resolve(), options.folder.resolve(), *UNLIMITED, tls=options.tls)
    print(f"{server.url} {credentials}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(server.stop()))
    try:
        sys.exit(server.process.wait())
    except KeyboardInterrupt:
        sys.exit(server.stop())


if __name__ == "__main__":
    main()
