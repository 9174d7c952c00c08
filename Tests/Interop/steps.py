"""What the drivers share: steps that are counted and printed, a client without a library, and the sign-in."""

import argparse
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse

import requests

import patience

patience.install()


class Steps:
    """Counts steps. A failing step is printed, and the next one is run; at the end the run counts as failed."""

    def __init__(self, name, least=0):
        self.name, self.least, self.done, self.failed = name, least, 0, 0

    def __call__(self, title):
        return Step(self, title)

    def end(self):
        patience.report()
        print(f"{self.name}: {self.done} steps, {self.failed} failed", flush=True)
        if self.done < self.least:
            sys.exit(f"{self.name}: only {self.done} of {self.least} steps were taken")
        sys.exit(1 if self.failed else 0)


class Step:
    def __init__(self, steps, title):
        self.steps, self.title = steps, title

    def __enter__(self):
        self.steps.done += 1
        return self

    def __exit__(self, kind, error, _):
        if kind is not None and not issubclass(kind, Exception):
            return False
        word = "ok" if kind is None else "NOT OK"
        print(f"{word} {self.steps.done} {self.title}", flush=True)
        if kind is not None:
            self.steps.failed += 1
            payload = getattr(error, "payload", None)
            print(f"    {kind.__name__}: {str(error)[:1500]}" + (f"\n    {json.dumps(payload)[:1500]}" if payload else ""), flush=True)
        return True


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what + ': ' if what else ''}{found!r} instead of {wanted!r}")


def arguments(about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--url", help="where the server is (what the credentials say)")
    parser.add_argument("--credentials", required=True, type=pathlib.Path, help="what start_server.py has written")
    options = parser.parse_args()
    credentials = json.loads(options.credentials.read_text())
    credentials["url"] = (options.url or credentials["url"]).rstrip("/")
    return credentials


class Client:
    """Sends requests as given, with the given credentials."""

    def __init__(self, credentials, verify=None):
        self.given = credentials
        self.url = credentials["url"]
        self.session = requests.Session()
        self.session.verify = verify or credentials.get("certificate") or True
        self.session.trust_env = False

    def base(self, database="private", container=None, environment=None):
        return f"{self.url}/database/1/{container or self.given['container']}/{environment or self.given['environment']}/{database}"

    def own(self, path, container=None):
        return f"{self.url}/tidemark/1/{container or self.given['container']}/{self.given['environment']}{path}"

    def post(self, address, body=None, *, bearer=None, api=None, web=None, headers=None, data=None, params=None, method="POST"):
        """The answer, whatever its status. Tokens go where they belong: into the query or the header."""
        headers, params = dict(headers or {}), dict(params or {})
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        if api:
            params["ckAPIToken"] = api
        if web:
            params["ckWebAuthToken"] = web
        if data is None and body is not None:
            data = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        return self.session.request(method, address, params=params, data=data, headers=headers, timeout=60, allow_redirects=False)

    def get(self, address, **more):
        return self.post(address, method="GET", **more)

    def as_anna(self, operation, body, database="private", **more):
        """Sends a request with a device's session; it must succeed."""
        answer = self.post(self.base(database) + operation, body, bearer=self.given["accounts"]["anna"]["token"], **more)
        if answer.status_code != 200:
            raise AssertionError(f"{operation}: {answer.status_code} {answer.text[:500]}")
        return answer.json()


def refused(answer, status, *codes):
    """Checks a refusal: its status, its code, and the members that every error has."""
    shown = f"{answer.status_code} {answer.text[:300]!r}"
    check(answer.status_code == status, f"{shown} instead of {status}")
    check(answer.headers.get("Content-Type", "").startswith("application/json"), f"no JSON: {answer.headers.get('Content-Type')}")
    error = answer.json()
    check(error.get("serverErrorCode") in codes, f"{shown} instead of {codes}")
    check(isinstance(error.get("uuid"), str) and isinstance(error.get("reason"), str) and error["reason"], f"no uuid or no reason: {shown}")
    return error


def only(outcomes, code=None):
    """The only outcome of a list; with a code, it must be that error."""
    equal(len(outcomes), 1, "outcomes")
    equal(outcomes[0].get("serverErrorCode"), code, str(outcomes[0])[:400])
    return outcomes[0]


class Form(html.parser.HTMLParser):
    """The first form of a page."""

    def __init__(self, page):
        super().__init__()
        self.action, self.method, self.fields, self.is_open = None, None, {}, False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form" and self.action is None:
            self.action, self.method, self.is_open = given.get("action", ""), given.get("method", "get").upper(), True
        elif tag == "input" and self.is_open and given.get("name"):
            self.fields[given["name"]] = (given.get("type", "text"), given.get("value", ""))

    def handle_endtag(self, tag):
        if tag == "form":
            self.is_open = False

    def filled(self, email, password, stay=False):
        filled = {}
        for name, (kind, value) in self.fields.items():
            if kind == "hidden":
                filled[name] = value
            elif kind == "password":
                filled[name] = password
            elif kind == "checkbox":
                if stay:
                    filled[name] = value or "on"
            elif kind == "email" or "mail" in name.lower() or kind == "text":
                filled[name] = email
        return filled


def redirect_address(client, api):
    """The address of the sign-in page, from the answer 421 to a request without a session."""
    answer = client.post(client.base() + "/zones/list", {}, api=api)
    error = refused(answer, 421, "AUTHENTICATION_REQUIRED")
    check(error.get("redirectURL"), f"no redirectURL: {answer.text}")
    return error["redirectURL"]


def post_form(client, address, account, stay=False, password=None):
    """The answer to the sign-in page's form, filled in."""
    page = client.get(address)
    equal(page.status_code, 200, "the sign-in page")
    check(page.headers.get("Content-Type", "").startswith("text/html"), "the sign-in page is no HTML")
    form = Form(page.text)
    check(form.action is not None and form.method == "POST", f"no form that posts: {page.text[:500]}")
    given = client.given["accounts"][account]
    fields = form.filled(given["email"], password or given["password"], stay)
    return client.post(urllib.parse.urljoin(address, form.action or address), data=urllib.parse.urlencode(fields),
                       headers={"Content-Type": "application/x-www-form-urlencoded", "Origin": client.url, "Referer": address})


def web_token(client, account="anna", stay=False):
    """A web-auth token from the sign-in page."""
    answer = post_form(client, redirect_address(client, client.given["apiToken"]), account, stay)
    check(answer.status_code in (302, 303), f"signing in: {answer.status_code} {answer.text[:300]}")
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(answer.headers["Location"]).query)
    return query["ckWebAuthToken"][0]


def index(given, record_type, *fields):
    """Makes fields of a type queryable and sortable, while the server runs. `recordName` stands for the type itself."""
    for field in fields:
        command = [given["tidemark"], "admin", "schema", "index", "--container", given["container"], "--type", record_type, "--field", field,
                   "--queryable", *([] if field == "recordName" else ["--sortable"]), *given["place"]]
        until = time.monotonic() + patience.PATIENCE
        while True:
            ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | given.get("variables", {}))
            # 69: the database can't be reached.
            if ended.returncode != 69 or not patience.is_needed() or time.monotonic() > until:
                break
            time.sleep(1)
        check(ended.returncode == 0, f"{' '.join(command[1:])}: {ended.stdout}{ended.stderr}")


def memory(pids):
    """The resident megabytes of the largest of some processes."""
    return max(map(resident, pids))


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} is gone")


def healthy(client, within=5.0):
    """Whether the server soon answers a well-formed request; while a cloud fails over, as soon as the cloud is back."""
    within += patience.PATIENCE if patience.is_needed() else 0
    began = time.monotonic()
    answer = client.get(client.url + "/health")
    equal(answer.status_code, 200, "health")
    client.as_anna("/zones/list", {})
    took = time.monotonic() - began
    check(took < within, f"a healthy request took {took:.1f} s")
