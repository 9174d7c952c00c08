#!/usr/bin/env python3
"""Drives the web journal in two sessions of Chromium, as two people would: they share a place and see each other's changes without reloading.

With --screenshots FOLDER it makes a picture of each page, too.
"""

import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path[:0] = [str(ROOT / "Tests/Console"), str(ROOT / "Tests/Interop")]

from browser import HOSTILE, Browser, begin, check_nothing, parser, views  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
import start_server  # noqa: E402
from steps import Steps, check, equal  # noqa: E402

SAMPLE = ROOT / "Examples/journal"
ADA, BEN = "Ada Berg", "Ben Holm"


class Site:
    """The program, on a port of its own."""

    def __init__(self, program, folder, *cloud):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [program, *map(str, cloud), "--port", "0", "--data", str(folder / "data")], stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True)
        line = self.process.stdout.readline()
        check("http://" in line, f"it did not start: {line}{self.log.read_text()[-2000:]}")
        self.url = line[line.index("http://"):].strip()

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it had to be killed"


def sign_in(browser, name, path="/"):
    browser.open(path, "")
    browser.press(f"{name[0]} Continue as {name}")


def captions(browser):
    return browser.steadily(lambda: [element.text for element in browser.all(".card .caption")])


def add(browser, caption, details, picture):
    browser.open("/destinations/new", "")
    browser.type("caption", caption)
    browser.type("details", details)
    browser.find("[name=photo]").send_keys(str(SAMPLE / "pictures" / picture))
    browser.press("Save")


def stay(browser):
    """Marks the page, so that a reload would be noticed."""
    browser.driver.execute_script("window.stays = true")
    browser.wait(lambda: browser.driver.execute_script("return document.documentElement.dataset.isLive === 'true'"), "the page does not follow")


def has_stayed(browser):
    check(browser.driver.execute_script("return window.stays === true"), "the page was loaded again")


def edit(browser, name, text):
    browser.press("Edit")
    browser.type(name, text)
    browser.press("Save")


def together(step, url):
    with Browser(url) as ada, Browser(url) as ben:
        with step("two people sign in, each with a journal of their own"):
            sign_in(ada, ADA)
            sign_in(ben, BEN)
            equal((len(captions(ada)), len(captions(ben))), (10, 3))
            ada.wait_for_pictures()
        with step("a photo is added; what it says of its time is read"):
            add(ada, "Neko Harbour", "Penguins on the shore.", "neko-harbour.jpg")
            check("“Neko Harbour” is saved." in ada.text and "20" in ada.find(".story .facts").text, ada.text[:500])
            ada.wait_for_pictures()
            size = ada.driver.execute_script("const image = document.querySelector('.photo img'); return [image.naturalWidth, image.naturalHeight]")
            check(max(size) == 960, str(size))
            place = ada.driver.current_url.removeprefix(url)
        with step("another window of hers shows it at once"):
            with Browser(url) as window:
                sign_in(window, ADA)
                stay(window)
                add(ada, "A short visit", "Gone soon.", "amboseli.jpg")
                window.wait(lambda: "A short visit" in captions(window), "the place does not appear")
                ada.press("Delete")
                ada.press("Delete it")
                window.wait(lambda: "A short visit" not in captions(window), "the place does not go")
                has_stayed(window)
        with step("she shares it by a link for Ben, who sees who it is from and accepts"):
            ada.open(place, "")
            ada.type("email", "ben@example.org")
            ada.press("Make a link")
            link = ada.find("input.link").get_property("value")
            check(link.startswith(url + "/invitations/"), link)
            ada.wait(lambda: "invited, may look" in ada.text, "he is not among the people")
            ben.open("/", "")
            stay(ben)
            stay(ada)
            with Browser(url) as window:
                sign_in(window, BEN, link.removeprefix(url))
                check("Ada Berg shares this place with you. You may look at it." in window.text, window.text[:500])
                window.press("Accept")
            ben.wait(lambda: "Neko Harbour" in captions(ben), "the place does not come")
            has_stayed(ben)
            check("from Ada Berg" in ben.text, ben.text[:500])
        with step("her page shows that he takes part, without a reload"):
            ada.wait(lambda: "Ben Holm\nmay look" in ada.find("#people").text, "he does not take part")
            has_stayed(ada)
        with step("he may look alone: the buttons are disabled, with the reason"):
            ben.open(place, "")
            for name in ("Edit", "Delete"):
                button = next(it for it in ben.all("#actions button") if it.text == name)
                check(not button.is_enabled(), f"{name} is enabled")
                reason = ben.find(f"#{button.get_attribute('aria-describedby')}").text
                check("Read-Only" in reason and "owner" in reason, reason)
            check("Leave" in ben.text and "Make a link" not in ben.text, ben.text[:800])
        with step("he sees what she writes, without a reload"):
            stay(ben)
            ada.open(place, "")
            edit(ada, "details", "Penguins on the shore, and a wind.")
            ben.wait(lambda: "and a wind" in ben.text, "the change does not come")
            has_stayed(ben)
        with step("she lets him edit, his buttons are enabled, and she sees what he writes"):
            ada.press("Only look") if "Only look" in ada.text else ada.press("Let edit")
            ben.wait(lambda: any(it.text == "Edit" for it in ben.all("#actions a")), "he may not edit")
            has_stayed(ben)
            stay(ada)
            edit(ben, "caption", "Neko Harbour, Antarctica")
            ada.wait(lambda: ada.title == "Neko Harbour, Antarctica", "the caption does not come")
            has_stayed(ada)
        with step("both change the same words: the second is asked, and nothing is lost"):
            edit(ben, "caption", "Neko Harbour at noon")
            ada.wait(lambda: ada.title == "Neko Harbour at noon", "his words do not come")
            ada.press("Edit")
            ben.open(place, "")
            edit(ben, "caption", "Neko Harbour in January")
            with Browser(url) as window:
                sign_in(window, ADA, place)
                window.wait(lambda: window.title == "Neko Harbour in January", "his words do not come")
            ada.type("caption", "Neko Harbour")
            ada.press("Save")
            check("Somebody else has saved something else" in ada.text and "Neko Harbour in January" in ada.text, ada.text[:600])
            equal(ada.find("[name=caption]").get_property("value"), "Neko Harbour")
            ada.press("Save mine")
            equal(ada.title, "Neko Harbour")
        with step("markup in texts is shown as text"):
            edit(ada, "caption", HOSTILE)
            equal(ada.title, HOSTILE)
            ben.open("/", "")
            ben.wait(lambda: HOSTILE in captions(ben), "the place is not there")
            check("broken" not in ben.driver.title and not ben.all("main script, img[src=x]"), ben.driver.title)
            ben.press(HOSTILE.split("<")[0])
            equal(ben.title, HOSTILE)
            edit(ada, "caption", "Neko Harbour")
        with step("she stops sharing: his page says that the place is gone"):
            ben.wait(lambda: ben.title == "Neko Harbour", "the caption does not come")
            stay(ben)
            ada.press("Stop sharing")
            ben.wait(lambda: "This place is gone" in ben.text, "his page does not say so")
            ben.open("/", "")
            equal(len(captions(ben)), 3)
        with step("no page had anything to complain of, such as its policy"):
            complaints = [text for browser in (ada, ben) for text in browser.complaints()]
            check(not complaints, "\n".join(complaints))


def by_keys(step, url):
    with Browser(url) as it:
        with step("all of it is used by keys"):
            it.open("/", "")
            it.find("main form button").send_keys(Keys.ENTER)
            it.wait(lambda: it.title == "Places" and len(captions(it)) == 10, "nobody is signed in, or places are missing")
            it.skip_to_content()
            seen = [it.tab().text.split("\n")[0] for _ in range(4)]
            equal(seen[:2], ["Add a place", captions(it)[0]])
            it.driver.switch_to.active_element.send_keys(Keys.ENTER)
            it.wait(lambda: it.title != "Places", "the place does not open")


def without_scripts(step, url):
    with Browser(url, scripts=False) as ada, Browser(url, scripts=False) as ben:
        with step("without scripts everything works but that pages follow"):
            for browser, name in ((ada, ADA), (ben, BEN)):
                browser.open("/", "")
                browser.follow(next(it for it in browser.all("main button") if name in it.text))
                equal(browser.title, "Places")
            ada.open("/destinations/new", "")
            ada.find("[name=caption]").send_keys("Without scripts")
            ada.find("[name=photo]").send_keys(str(SAMPLE / "pictures/redwoods.jpg"))
            ada.follow(ada.find("main form button"))
            equal(ada.title, "Without scripts")
            ada.find("[name=email]").send_keys("ben@example.org")
            ada.follow(ada.find("form.invite button"))
            ben.driver.get(ada.find("input.link").get_property("value"))
            ben.follow(ben.find("button[value=accept]"))
            end = time.monotonic() + 10
            ben.open("/", "")
            while "Without scripts" not in captions(ben):
                check(time.monotonic() < end, "the place does not come")
                ben.open("/", "")
            ben.follow(next(it for it in ben.all(".card") if "Without scripts" in it.text))
            check(not ben.find("#actions button").is_enabled(), "he may edit")
            ada.follow(next(it for it in ada.all("#actions a") if it.text == "Delete"))
            ada.follow(ada.find("main form button"))
            check("The place is deleted." in ada.text, ada.text[:300])


def sign_in_with_password(browser, account, path="/"):
    browser.open(path, "")
    browser.type("email", account["email"])
    browser.type("password", account["password"])
    browser.press("Sign in")


def served(step, program, tidemark, server_program, folder):
    """The same with accounts of a Tidemark server."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cloud = start_server.Cloud(tidemark, folder)
    cloud.add_container("iCloud.org.example.webjournal")
    anna, ben = cloud.add_account("anna"), cloud.add_account("ben")
    server = start_server.Server(server_program, folder, cloud.data)
    site = Site(program, folder / "site", "--server", server.url)
    try:
        with Browser(site.url) as one, Browser(site.url) as other:
            with step("with a server, a wrong password is refused, and the right one lets in"):
                sign_in_with_password(one, anna | {"password": "wrong"})
                check("The address or the password is wrong." in one.text, one.text[:300])
                equal(one.find("[name=email]").get_property("value"), anna["email"])
                sign_in_with_password(one, anna)
                equal(one.title, "Places")
                sign_in_with_password(other, ben)
            with step("with a server, a place is shared, and changes come at once"):
                add(one, "Reine", "Light until midnight.", "reine.jpg")
                one.type("email", ben["email"])
                one.press("Make a link")
                link = one.find("input.link").get_property("value")
                stay(one)
                other.driver.get(link)
                check("Anna Berg shares this place with you." in other.text, other.text[:300])
                other.press("Accept")
                stay(other)
                other.wait(lambda: "Reine" in captions(other), "the place does not come")
                one.wait(lambda: "Ben Berg\nmay look" in one.find("#people").text, "he does not take part")
                has_stayed(one)
                edit(one, "caption", "Reine in June")
                other.wait(lambda: "Reine in June" in captions(other), "the change does not come")
                has_stayed(other)
            with step("with a server, who signs out is out, and finds everything when they are back"):
                one.press("Sign out")
                one.open("/", "")
                equal(one.title, "Travel journal")
                sign_in_with_password(one, anna)
                equal(captions(one), ["Reine in June"])
    finally:
        ends = [site.stop(), server.stop()]
    with step("with a server, it ends when it is asked to, and had nothing to log"):
        equal((ends, site.log.read_text()), ([0, 0], ""))


def looks(step, site, empty, folder):
    """Looks at each page at two widths and in both colour schemes."""
    with Browser(site.url) as it, Browser(empty.url) as other:
        sign_in(it, ADA)
        place = next(card.get_attribute("href") for card in it.all(".card") if "Reine" in card.text).removeprefix(site.url)
        if "Nobody else sees" in open_page(it, place):
            it.type("email", "ben@example.org")
            it.press("Make a link")
            with Browser(site.url) as ben:
                sign_in(ben, BEN, it.find("input.link").get_property("value").removeprefix(site.url))
                ben.press("Accept")
            it.wait(lambda: "Ben Holm\nmay look" in it.find("#people").text, "he does not take part")
        sign_in(other, ADA)
        with Browser(site.url) as ben, Browser(site.url) as nobody:
            sign_in(ben, BEN)
            ben.wait(lambda: len(captions(ben)) > 3, "the place does not come")
            pages = [
                ("sign-in", nobody, "/sign-in"), ("places", it, "/"), ("empty", other, "/"), ("place", it, place), ("place-as-reader", ben, place),
                ("places-as-reader", ben, "/"), ("add", it, "/destinations/new"), ("edit", it, f"{place}/edit"), ("delete", it, f"{place}/delete"),
                ("not-found", it, "/nothing")]
            for width, scheme, words in views():
                with step(f"nothing keeps people from using the pages {words}"):
                    finds = []
                    for name, browser, path in pages:
                        found = browser.examine(name, path, "", width, scheme, folder)
                        finds += [find for find in found if "a script or a style" not in find or "live.js" not in browser.driver.page_source]
                    check_nothing(finds)


def open_page(browser, path):
    browser.open(path, "")
    return browser.text


def main():
    options = parser(__doc__, webjournal="the program", tidemark="the command-line tool", server="the server").parse_args()
    begin(options)
    nothing = options.folder / "no-sample"
    nothing.mkdir(parents=True)
    (nothing / "journal.jsonl").write_text("")
    site = Site(options.webjournal, options.folder / "site", "--demo", SAMPLE)
    empty = Site(options.webjournal, options.folder / "empty", "--demo", nothing)
    step = Steps("web journal", least=5 if options.screenshots else 24)
    try:
        if not options.screenshots:
            with step("the server says what browsers are to allow"):
                with urllib.request.urlopen(site.url + "/sign-in") as page:
                    policy = page.headers["Content-Security-Policy"]
                    check(policy.startswith("default-src 'none'") and "unsafe" not in policy, policy)
            by_keys(step, site.url)
            together(step, site.url)
            without_scripts(step, site.url)
            served(step, options.webjournal, options.tidemark, options.server, options.folder / "served")
        looks(step, site, empty, options.screenshots)
    finally:
        ends = [site.stop(), empty.stop()]
    with step("it ends when it is asked to, and had nothing to log"):
        equal(ends, [0, 0])
        equal(site.log.read_text() + empty.log.read_text(), "")
    step.end()


if __name__ == "__main__":
    main()
