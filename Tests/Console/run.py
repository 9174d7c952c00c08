#!/usr/bin/env python3
"""Drives the console in Chromium: signs in, finds, makes, changes and deletes records, and looks at each page at two widths and in both colour schemes.

With --screenshots FOLDER it makes a picture of each page, too.
"""

import sys
import urllib.parse

sys.dont_write_bytecode = True

import mending
import people
import sample
from browser import HOSTILE, Browser, begin, check_nothing, parser, views
import places
from steps import Client, Steps, check, equal

CITY = "c=iCloud.org.example.journal&type=City"
TRIPS = "c=iCloud.org.example.journal&db=private&account=anna%40example.org&zone=Trips"
# The examined pages, by the names of their pictures.
PAGES = {
    "overview": "", "record-types": "/records?c=iCloud.org.example.journal", "records": f"/records?{CITY}", "records-private": f"/records?{TRIPS}&type=Day",
    "missing-index": f"/records?{CITY}&s0=stars&d0=descending", "record": f"/record?{CITY}&name=oslo", "record-edit": f"/record?{CITY}&name=oslo&edit=1",
    "record-hostile": f"/record?{CITY}&name=hostile", "schema": "/schema?c=iCloud.org.example.journal", "zones": f"/zones?{TRIPS}&shares=1",
    "permissions": f"/zones?{TRIPS}&shares=1&person=ben%40example.org",
    "accounts": "/accounts", "account": "/account?id=anna%40example.org", "own": "/me", "access": "/access", "activity": "/activity?all=1",
    "requests": "/activity?show=requests&all=1", "sync-errors": "/activity?show=failures&all=1",
    "notifications": "/activity?show=notifications&c=iCloud.org.example.journal&account=anna%40example.org", "not-found": "/records?c=nothing",
}


def flows(step, url, cloud, given, tls):
    anna, ben = given["accounts"]["anna"], given["accounts"]["ben"]
    with Browser(url) as it:
        with step("without a session every page leads to signing in, and back"):
            it.open(f"/records?{CITY}")
            equal(urllib.parse.urlsplit(it.driver.current_url).path, "/console/sign-in")
            it.type("email", anna["email"])
            it.type("password", anna["password"])
            it.press("Sign in")
            check("/console/records?" in it.driver.current_url and "type=City" in it.driver.current_url, it.driver.current_url)
        with step("a wrong password is refused, in words"):
            with Browser(url) as other:
                other.sign_in(anna, "wrong")
                check("is wrong" in other.text, other.text)
                equal(other.driver.switch_to.active_element.get_attribute("name"), "password")
        with step("the cookie is no script's, and goes to no other site"):
            cookie = next(cookie for cookie in it.driver.get_cookies() if "tidemark-console" in cookie["name"])
            equal((cookie["httpOnly"], cookie["sameSite"], cookie["path"], cookie["secure"]), (True, "Strict", "/console", tls))
            equal(it.driver.execute_script("return document.cookie"), "")
        with step("records are found, with pictures"):
            check("Tromsø" in it.text and "Bergen" in it.text, it.text[:500])
            check(it.all("td img"), "no picture")
            it.wait_for_pictures()
        with step("a filter finds fewer, and the page shows the request"):
            it.choose("f0", "title")
            it.choose("o0", "BEGINS_WITH")
            it.type("v0", "T")
            it.press("Run the query")
            equal([link.text for link in it.all("td:first-child a")], ["tromso"])
            it.press("The request as JSON")
            check('"comparator": "BEGINS_WITH"' in it.text and "curl" in it.text, it.text[-800:])
        with step("a missing index is named, and added by a press"):
            it.open(f"/records?{CITY}&s0=stars&d0=descending")
            check("Field 'stars' is not marked sortable" in it.text, it.text[:800])
            it.press("Add the index sortable to stars")
            names = [link.text for link in it.all("td:first-child a")]
            equal(names[-1], "hostile")
        with step("what others have written is shown as text"):
            it.open(f"/record?{CITY}&name=hostile")
            check(HOSTILE in it.text, it.text[:500])
            check("broken" not in it.driver.title, it.driver.title)
            equal(len(it.all("main script, main img[src=x]")), 0)
        with step("a record is made"):
            it.open(f"/records?{CITY}")
            it.press("New record")
            it.type("name", "hamar")
            it.type("is.title", "Hamar")
            it.type("is.stars", "2")
            it.press("Save")
            check("The record is saved" in it.text and it.title == "hamar", it.text[:500])
        with step("a value that does not fit is refused, and nothing that was typed is lost"):
            it.press("Edit")
            it.type("is.title", "Hamar by the lake")
            it.type("is.stars", "many")
            it.press("Save")
            check("'stars' takes a whole number" in it.text, it.text[:500])
            equal(it.find("[name='is.title']").get_property("value"), "Hamar by the lake")
            equal(it.find("[name='is.stars']").get_property("value"), "many")
        with step("what a device changes while a form is refused is shown before it is saved"):
            cloud.admin("records", "set", "hamar", "stars=3", "--container", given["container"])
            it.type("is.stars", "5")
            it.press("Save")
            check("The record was changed while you edited it. Nothing is saved yet." in it.text, it.text[:500])
        with step("what was changed meanwhile is shown beside what was typed"):
            it.open(f"/record?{CITY}&name=hamar&edit=1")
            cloud.admin("records", "set", "hamar", "stars=4", "--container", given["container"])
            it.type("is.title", "Hamar by the lake")
            it.press("Save")
            check("was changed while you edited it" in it.text, it.text[:500])
            it.press("Save")
            check("Hamar by the lake" in it.text and "\n4\n" in it.text + "\n", it.text[:700])
        with step("a record is deleted, once that was confirmed"):
            it.press("Delete")
            equal(it.title, "Delete the record?")
            it.press("Delete the record")
            it.open(f"/record?{CITY}&name=hamar")
            equal(it.title, "Not found")
        with step("all was written down"):
            it.open("/activity")
            for action in ("admin.records.delete", "admin.records.save", "admin.schema.index"):
                check(action in it.text, f"no {action}")
        with step("the schema is deployed"):
            it.open("/schema?c=iCloud.org.example.journal")
            check("City is new" in it.text, it.text[:500])
            it.press("Deploy to production")
            it.press("Deploy it")
            check("Production has the same schema" in it.text, it.text[:500])
        with step("a page is used by keys alone: the content is reached at once, and all that can be used in order"):
            it.open(f"/records?{CITY}")
            it.skip_to_content()
            order = []
            for _ in range(60):
                now = it.tab()
                if now is None:
                    break
                order.append(it.driver.execute_script("const box = arguments[0].getBoundingClientRect(); return Math.round((box.top + scrollY) / 400)", now))
            check(len(order) > 10 and order == sorted(order), f"the order of focus jumps: {order}")
        with step("who signs out is out, also with the old cookie"):
            it.press("Sign out")
            equal(it.title, "Tidemark console")
            it.driver.add_cookie({key: cookie[key] for key in ("name", "value", "path")})
            it.open("/activity")
            equal(it.title, "Tidemark console")
    with Browser(url) as it:
        with step("a developer sees their container, and no other"):
            it.sign_in(ben)
            check("iCloud.org.example.other" in it.text and "iCloud.org.example.journal" not in it.text, it.text[:500])
            it.open(f"/records?{CITY}")
            equal(it.title, "Not found")
            it.open("/accounts")
            equal(it.title, "Not allowed")


def without_scripts(step, url, given):
    with Browser(url, scripts=False) as it:
        with step("reading needs no script"):
            it.sign_in(given["accounts"]["anna"])
            equal(it.title, "Overview")
            it.open("/records?c=iCloud.org.example.journal")
            it.choose("type", "City")
            it.press("Show records")
            check("Tromsø" in it.text, it.text[:500])
            it.press("oslo")
            check("opera house" in it.text, it.text[:500])


def refuse(given):
    """Makes the server refuse a device twice, so that a picture shows errors: a record that does not fit the schema, and a wrong password."""
    client, anna = Client(given), given["accounts"]["anna"]
    operation = {"operationType": "forceUpdate", "record": {"recordName": "hammerfest", "recordType": "City", "fields": {"stars": {"value": "many"}}}}
    client.post(client.base("public") + "/records/modify", {"operations": [operation]}, bearer=anna["token"])
    client.post(client.own("/session"), {"email": anna["email"], "password": "wrong", "device": "a phone"})


def looks(step, url, given, folder):
    with Browser(url) as it:
        for width, scheme, words in views():
            finds = it.examine("sign-in", "/sign-in", "/console", width, scheme, folder)
            it.look(width, scheme)
            it.sign_in(given["accounts"]["anna"])
            for name, path in PAGES.items():
                finds += it.examine(name, path, "/console", width, scheme, folder)
            it.look(width, scheme)
            it.open("")
            it.press("Sign out")
            with step(f"nothing keeps people from using the pages {words}"):
                check_nothing(finds)


def main():
    given_options = parser(__doc__, tidemark="the command-line tool", server="the server")
    given_options.add_argument("--tls", action="store_true", help="over TLS")
    given_options.add_argument("--place", choices=("directory", "postgres"), default="directory", help="where the cloud is (directory)")
    options = given_options.parse_args()
    begin(options)
    # Over TLS there is no device, because it would have to trust the certificate.
    step = Steps("console", least=8 if options.screenshots else 61 if options.tls else 63)
    place = places.PLACES[options.place](options, options.folder)
    try:
        server, given = sample.start(place, options)
        cloud = place.cloud
        if not options.screenshots:
            without_scripts(step, server.url, given)
            people.without_scripts(step, server.url, given)
            mending.without_scripts(step, server.url, given)
        else:
            refuse(given)
        looks(step, server.url, given, options.screenshots)
        people.looks(step, server.url, given, options.screenshots)
        if not options.screenshots:
            flows(step, server.url, cloud, given, options.tls)
            people.shares(step, server, cloud, given, options.folder, options.tls)
            people.account(step, server, cloud, given, options.folder)
            people.provider(step, server, cloud, given)
            people.invitation(step, server.url, cloud, given)
            mending.flows(step, server.url, cloud, given, options.folder)
        wrong = place.fell() or [f"the server ended with {code}" for code in place.stop() if code != 0]
        if wrong:
            sys.exit(f"{wrong[0]}: {server.log.read_text()[-2000:]}")
    finally:
        place.kill()
        place.end()
    step.end()


if __name__ == "__main__":
    main()
