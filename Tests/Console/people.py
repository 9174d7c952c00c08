"""What people do at their own pages, and with links into shares: in Chromium, and at a terminal."""

import base64
import hashlib
import hmac
import os
import pty
import re
import select
import subprocess
import tarfile
import time

from browser import HOSTILE, Browser, check_nothing, views
from steps import check, equal

UNDER = "/account"


def terminal(command, folder, answers, environment=None):
    """Runs a command on a terminal of its own, and types each answer once its question is shown. Returns the output and the exit status."""
    pid, side = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(command[0], list(map(str, command)), os.environ | (environment or {}))
    shown, asked, end = "", 0, time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([side], [], [], 0.1)[0]:
            try:
                piece = os.read(side, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece.decode(errors="replace")
        for question, answer in answers[:1]:
            if question in shown[asked:]:
                asked = len(shown)
                os.write(side, (answer + "\n").encode())
                answers = answers[1:]
    _, status = os.waitpid(pid, 0)
    os.close(side)
    return shown, os.waitstatus_to_exitcode(status)


def shares(step, server, cloud, given, folder, tls):
    url, links = server.url, given["links"]
    path = f"/{given['container']}/development/"
    ben = given["accounts"]["ben"]
    with Browser(url) as it:
        with step("a link says who shares what, and how to accept it"):
            it.open(path + links["open"]["token"], "/share")
            equal(it.title, "Summer trip")
            check("Anna Berg shares “Summer trip” with you." in it.text, it.text)
            check("everybody who has the link" in it.text and "read" in it.text, it.text)
            check(f"tidemark share accept {url}/share{path}{links['open']['token']}" in it.text, it.text)
            check(it.find("a[href^='tidemark://share/']").text == "Open in the app", it.text)
        with step("an unknown link and a revoked one look alike"):
            it.open(path + links["revoked"]["token"], "/share")
            revoked = it.driver.page_source
            it.open(path + "A" * 32, "/share")
            equal(it.title, "This link leads nowhere")
            equal(it.driver.page_source, revoked)
        with step("from the link somebody signs in, comes back to it, and accepts"):
            it.open(path + links["open"]["token"], "/share")
            it.press("Sign in and accept here")
            it.type("email", ben["email"])
            it.type("password", ben["password"])
            it.press("Sign in")
            equal(it.title, "Summer trip")
            it.press("Accept")
            check("You take part as ben@example.org" in it.text, it.text)
        with step("the cookie is no script's"):
            cookie = next(cookie for cookie in it.driver.get_cookies() if "tidemark-account" in cookie["name"])
            equal((cookie["httpOnly"], cookie["sameSite"], cookie["path"], cookie["secure"]), (True, "Lax", "/", tls))
            equal(it.driver.execute_script("return document.cookie"), "")
    if tls:
        return
    tool, link = str(cloud.tidemark), f"{url}/share{path}{links['open']['token']}"
    phone = folder / "phone"
    phone.mkdir()
    with step("a link alone signs a new container in at a terminal, and accepts"):
        shown, status = terminal([tool, "share", "accept", link], phone, [("e-mail address:", ben["email"]), ("password of", ben["password"])])
        equal(status, 0)
        check(f"The link leads to the container '{given['container']}' of {url}" in shown, shown)
        check('accepted "Summer trip" of Anna Berg into Shared.tidemark: Read-Only' in shown, shown)
        check(ben["password"] not in shown, "the password was shown")
        listed = subprocess.run([tool, "records", "Shared.tidemark", "--type", "Day", "--json"], cwd=phone, capture_output=True, text=True)
        check("Day 12 of the trip" in listed.stdout, listed.stdout + listed.stderr)
    with step("from a pipe nobody is asked, and nothing is made"):
        pipe = folder / "pipe"
        pipe.mkdir()
        ended = subprocess.run([tool, "share", "accept", link], cwd=pipe, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        equal(ended.returncode, 64)
        check("--email ADDRESS --password-stdin" in ended.stderr and "tidemark account sign-in Shared.tidemark --server" in ended.stderr, ended.stderr)
        equal(list(pipe.iterdir()), [])


def account(step, server, cloud, given, folder):
    """Uses an account of its own, because it deletes the account at the end."""
    url = server.url
    dora = cloud.add_account("dora")
    with Browser(url) as it:
        downloads = folder / "downloads"
        it.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        with step("a person signs in with the password of their devices, and a wrong one is refused"):
            it.sign_in(dora, "wrong", UNDER)
            check("is wrong" in it.text, it.text)
            it.sign_in(dora, under=UNDER)
            equal(it.title, "Your account")
            check("this session" in it.text, it.text)
        with step("the name is changed with the password, and shown as text"):
            it.type("name", HOSTILE)
            it.find("form.card [name=password]").send_keys("wrong")
            it.press("Save")
            check("The password is wrong." in it.text, it.text)
            equal(it.find("#name").get_property("value"), HOSTILE)
            it.find("form.card [name=password]").send_keys(dora["password"])
            it.press("Save")
            check("are as you wrote them" in it.text, it.text)
            equal(it.find("#name").get_property("value"), HOSTILE)
            check("broken" not in it.driver.title and not it.all("main script, main img"), it.driver.title)
        with step("a device is seen, renamed, and its session is ended"):
            server.sign_in(dora)
            it.open("", UNDER)
            check("within the last hour" in it.text, it.text)
            it.press("Rename")
            name = it.find("td details [name=device]")
            name.clear()
            name.send_keys("Dora's laptop")
            it.press("Save the name")
            check("Dora's laptop" in it.text, it.text)
            rows = len(it.all("tbody tr"))
            it.press("End")
            check("The session has ended." in it.text, it.text)
            equal(len(it.all("tbody tr")), rows - 1)
        with step("a second factor is set up, and asked for"):
            it.complaints()  # Those of the pages before.
            it.press("Set up a second factor")
            address = it.find("details pre").get_attribute("textContent")
            secret = re.search(r"secret=([A-Z2-7]+)", address).group(1)
            check(secret in it.text.replace(" ", ""), it.text)
            for width, scheme, words in views():
                it.look(width, scheme)
                equal((words, it.scan("svg.symbol")), (words, [address]))
                check_nothing(it.finds() + it.complaints())
            it.type("code", code(secret))
            it.press("Set it up")
            codes = it.find("main .card pre").text.split()
            equal(len(codes), 8)
            it.press("Sign out")
            it.sign_in(dora, under=UNDER)
            check("Enter the code" in it.text, it.text)
            it.type("password", dora["password"])
            it.type("code", codes[0])
            it.press("Sign in")
            equal(it.title, "Your account")
            check("7 recovery codes left" in it.text, it.text)
            it.press("Make new recovery codes")
            it.type("password", dora["password"])
            it.press("Make new recovery codes")
            check(not set(codes) & set(it.find("main .card pre").text.split()), "the codes are those of before")
            it.press("The codes are in a safe place")
            check("8 recovery codes left" in it.text, it.text)
            it.press("Remove the second factor")
            it.type("password", dora["password"])
            it.press("Remove the second factor")
            check("The second factor is removed." in it.text, it.text)
        with step("the archive is downloaded, and tar reads it"):
            form = it.find(f"form[action='{UNDER}/export']")
            form.find_element("css selector", "[name=password]").send_keys(dora["password"])
            form.find_element("css selector", "button").click()
            file = downloaded(it, downloads, dora)
            with tarfile.open(file) as archive:
                equal(archive.getnames()[0], f"{file.stem}/README.txt")
                check(f"{file.stem}/audit.jsonl" in archive.getnames(), str(archive.getnames()))
                check(b"dora@example.org" in archive.extractfile(f"{file.stem}/account.json").read(), "no address")
        with step("another password ends the session, and is the one that counts"):
            it.open("", UNDER)
            form = it.find("#new").find_element("xpath", "ancestor::form")
            form.find_element("css selector", "[name=password]").send_keys(dora["password"])
            dora["password"] = "a password of another day"
            it.type("new", dora["password"])
            it.type("again", dora["password"])
            it.press("Change the password")
            check("Your password is changed" in it.text, it.text)
            it.sign_in(dora, under=UNDER)
            equal(it.title, "Your account")
        with step("an operator's link sets a forgotten password once"):
            link = cloud.admin("account", "reset-link", dora["email"], "--url", url)
            with Browser(url) as other:
                other.driver.get(link)
                equal(other.title, "Choose a password")
                dora["password"] = "a password by a link"
                other.type("new", dora["password"])
                other.type("again", dora["password"])
                other.press("Set the password")
                check("Your password is set." in other.text, other.text)
                other.driver.get(link)
                equal(other.title, "This link is over")
            it.open("", UNDER)
            check("Sign in" in it.text, it.text)
            it.sign_in(dora, under=UNDER)
        with step("the account is deleted with its data, by its password"):
            it.press("Delete the account")
            it.type("password", "wrong")
            it.press("Delete the account")
            check("The password is wrong." in it.text, it.text)
            it.type("password", dora["password"])
            it.press("Delete the account")
            check("Your account and its data are deleted." in it.text, it.text)
            check(dora["email"] not in cloud.admin("account", "list"), "the account is there")
        with step("what people changed is in the audit log"):
            log = cloud.admin("audit", "--json")
            for action in ("account.name", "account.password", "account.session.end", "account.second-factor.set", "account.export", "account.remove", "share.accept"):
                check(action in log, f"no {action}")


def invitation(step, url, cloud, given):
    """An operator adds an account in the console, and the person signs in."""
    anna, ines = given["accounts"]["anna"], {"email": "ines@example.org", "password": "a password of Ines"}
    with Browser(url) as it:
        it.sign_in(anna)
        with step("an address that is none, or has an account, is refused with what was typed"):
            it.open("/accounts")
            it.press("Add an account")
            for address, words in (("no address", "is no address of an account"), (anna["email"], "There is an account anna@example.org already")):
                it.type("email", address)
                it.type("name", "Ines Moe")
                it.press("Add the account")
                check(words in it.text, it.text)
                equal([it.find(f"[name={name}]").get_property("value") for name in ("email", "name")], [address, "Ines Moe"])
                check_nothing(it.finds())
        with step("an operator adds an account, and the person sets the password by the link and signs in"):
            it.type("email", ines["email"])
            it.press("Add the account")
            it.type("password", anna["password"])
            it.press("Add the account")
            check("The account is added, without a password" in it.text, it.text)
            check_nothing(it.finds())
            link = it.find("pre.link").text
            with Browser(url) as person:
                person.driver.get(link)
                equal(person.title, "Choose a password")
                person.type("new", ines["password"])
                person.type("again", ines["password"])
                person.press("Set the password")
                check("Your password is set." in person.text, person.text)
                person.sign_in(ines, under=UNDER)
                equal(person.title, "Your account")
                equal(person.find("#name").get_property("value"), "Ines Moe")
            it.press("To the account")
            check("admin.account.add" in it.text and "admin.account.password-link" in it.text, it.text)
        cloud.admin("account", "remove", ines["email"], "--with-data", "--yes")


def provider(step, server, cloud, who):
    """A new person, and the owner of an account, sign in with an identity provider, which reports no error in their requests."""
    url = server.url
    with Browser(url) as it:
        with step("a person without an account signs in with the provider, and gets one"):
            it.open("/sign-in", UNDER)
            it.press("Sign in with Example Ltd")
            equal(it.title, "Who are you?")
            it.press("Nora Lund")
            equal(it.title, "Your account")
            equal(it.find("#name").get_property("value"), "Nora Lund")
            check("nora@example.net" in cloud.admin("account", "list"), "there is no account")
            it.press("Sign out")
        with step("a person signs in with the provider from a link to a share, and comes back to it"):
            it.open(f"/{who['container']}/development/{who['links']['open']['token']}", "/share")
            it.press("Sign in and accept here")
            it.press("Sign in with Example Ltd")
            it.press("Nora Lund")
            equal(it.title, "Summer trip")
            it.press("Accept")
            check("You take part as nora@example.net" in it.text, it.text)
    emil = cloud.add_account("emil")
    with Browser(url) as it:
        with step("an account is connected with the provider, after its password, and then that signs in"):
            it.sign_in(emil, under=UNDER)
            form = next(form for form in it.all("form.card") if "Connect Example Ltd" in form.text)
            form.find_element("css selector", "[name=password]").send_keys(emil["password"])
            it.press("Connect Example Ltd")
            # A separate page leads to the provider.
            it.wait(lambda: it.title == "Who are you?", "the provider does not come")
            it.press("Emil Dahl")
            check("The identity signs in to your account from now on." in it.text, it.text)
            it.press("Sign out")
            it.open("/sign-in", UNDER)
            it.press("Sign in with Example Ltd")
            it.press("Emil Dahl")
            equal(it.title, "Your account")
            check(emil["email"] in it.driver.page_source, "another account")
        with step("an identity is disconnected, and signs in no more to that account"):
            it.press("Disconnect")
            check("signs in to your account no longer" in it.text, it.text)
            check("Nobody at Example Ltd signs in" in it.text, it.text)
        with step("nothing keeps people from using the pages, with a provider"):
            finds = it.examine("person", "", UNDER, 360, "dark")
            check_nothing(finds)
    with step("the provider was asked for nothing that it has to refuse"):
        equal(who["provider"].wrongs, [])


def without_scripts(step, url, given):
    with Browser(url, scripts=False) as it:
        with step("people's pages need no script"):
            it.sign_in(given["accounts"]["ben"], under=UNDER)
            equal(it.title, "Your account")
            it.open(f"/{given['container']}/development/{given['links']['open']['token']}", "/share")
            equal(it.title, "Summer trip")


def looks(step, url, given, folder):
    pages = {"person": ("", UNDER), "person-delete": ("/delete", UNDER), "share": (f"/{given['container']}/development/{given['links']['open']['token']}", "/share"),
             "share-nowhere": (f"/{given['container']}/development/{'A' * 32}", "/share")}
    for width, scheme, words in views():
        finds = []
        for signed_in in (False, True):
            with Browser(url, width, scheme) as it:
                if signed_in:
                    it.sign_in(given["accounts"]["ben"], under=UNDER)
                for name, (path, under) in pages.items() if signed_in else [("share-signed-out", pages["share"]), ("person-sign-in", ("/sign-in", UNDER))]:
                    finds += it.examine(name, path, under, width, scheme, folder)
                if signed_in:
                    finds += it.examine("person-second-factor", "", UNDER, width, scheme, folder, press="Set up a second factor")
        with step(f"nothing keeps people from using their pages {words}"):
            check_nothing(finds)


def downloaded(it, folder, account):
    """The archive of an account that a browser has just downloaded: its name has the account and the day."""
    files = []

    def is_there():
        files[:] = folder.glob(f"tidemark-export-{account['email']}-????-??-??.tar")
        return files
    it.wait(is_there, f"no archive: {list(folder.glob('*'))}")
    return files[0]


def code(secret):
    """The code that an authenticator app shows now (RFC 6238)."""
    digest = hmac.new(base64.b32decode(secret + "=" * (-len(secret) % 8)), int(time.time() // 30).to_bytes(8, "big"), hashlib.sha1).digest()
    place = digest[19] & 15
    return f"{(int.from_bytes(digest[place:place + 4], 'big') & 0x7fffffff) % 1_000_000:06}"
