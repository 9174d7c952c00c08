"""What operators and developers repair on the console's pages: files of records, shares, errors of devices, and whole environments."""

import tarfile

import people
import sample
from browser import Browser, check_nothing
from selenium.webdriver.support.ui import Select
from steps import Client, check, equal

CITY = "c=iCloud.org.example.journal&type=City"
TRIPS = "c=iCloud.org.example.journal&db=private&account=anna%40example.org&zone=Trips"


def flows(step, url, cloud, given, folder):
    anna, ben, other = given["accounts"]["anna"], given["accounts"]["ben"], given["foreignContainer"]
    client = Client(given)
    with Browser(url) as it:
        it.sign_in(anna)
        with step("a file is uploaded by the form, and seen; a drawing is shown as its text"):
            it.open(f"/record?{CITY}&name=bergen&edit=1")
            it.find("[name='file.picture']").send_keys(str(sample.PICTURES[-1]))
            it.press("Save")
            check("The record is saved" in it.text, it.text[:500])
            it.wait_for_pictures()
            check(it.all("img.preview"), "no preview")
            drawing = folder / "drawing.svg"
            drawing.write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>document.title='broken'</script></svg>")
            it.press("Edit")
            it.find("[name='file.picture']").send_keys(str(drawing))
            it.press("Save")
            check("<script>document.title='broken'</script>" in it.text and "broken" not in it.driver.title, it.text[:700])
            equal(len(it.all("img.preview")), 0)
            it.press("Edit")
            it.find("[name='clear.picture']").click()
            it.press("Save")
            check("drawing" not in it.text and not it.all("pre.preview"), it.text[:500])
            check("no earlier versions" in it.text and "Before and after" in it.text, it.text[-800:])
        with step("of anybody the page says what they may do in a zone, and why"):
            it.open(f"/zones?{TRIPS}&shares=1")
            it.type("person", ben["email"])
            it.press("Show the permissions")
            check("Summer trip: all records" in it.text and "✗ update" in it.text.replace("\n", " "), it.text[-1500:])
        with step("a link to a share is listed without what gives access, and revoked"):
            link = client.post(client.own("/private/links/make"), {"zoneID": {"zoneName": "Trips"}, "recordName": "cloudkit.zoneshare"}, bearer=anna["token"]).json()
            it.open(f"/zones?{TRIPS}&shares=1")
            check(link["id"] in it.text and link["token"] not in it.driver.page_source, "the link is not listed, or in the open")
            it.press(f"Revoke the link {link['id']}")
            it.press("Revoke the link")
            check("The link is revoked" in it.text and link["id"] not in it.text, it.text[:500])
        with step("an operator downloads all that is somebody's"):
            downloads = folder / "operator"
            it.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
            it.open("/account?id=ben%40example.org")
            it.press("Export all data")
            it.press("Cancel")
            equal(it.title, ben["email"])
            it.press("Export all data")
            it.find("main .card button").click()
            file = people.downloaded(it, downloads, ben)
            with tarfile.open(file) as archive:
                check(b"ben@example.org" in archive.extractfile(f"{file.stem}/account.json").read(), "no address")
        with step("a form that is refused has what was typed, and says what is wrong where it was typed"):
            it.open("/account?id=ben%40example.org")
            it.type("quota", "lots of it")
            it.press("Set the quota")
            field = it.find("[name=quota]")
            equal(field.get_property("value"), "lots of it")
            equal(it.driver.switch_to.active_element, field)
            check("A quota is a whole number" in it.find(f"#{field.get_attribute('aria-describedby')}").text, it.text[:500])
            check_nothing(it.finds())
            it.type("quota", "20MB")
            it.press("Set the quota")
            check("The quota is 20 MB in each container." in it.text, it.text[:500])
            it.open(f"/schema?c={other}")
            it.find("#type").send_keys("City")
            it.find("#field").send_keys("1 wrong")
            it.choose("kind", "list<string>")
            it.press("Add the field")
            equal([it.find(f"#{name}").get_property("value") for name in ("type", "field", "kind")], ["City", "1 wrong", "list<string>"])
            check(it.all("[role=alert]"), it.text[:500])
        with step("the boxes of all fields of a type are set by one press"):
            it.open("/schema?c=iCloud.org.example.journal")
            section = it.find("section[aria-label=City]")
            for name in ("queryable.stars", "sortable.visited"):
                section.find_element("css selector", f"[name='{name}']").click()
            it.steadily(lambda: section.find_element("css selector", "form[id] button").click())
            it.wait(lambda: "The indexes are set." in it.text, "nothing was set")
            for name in ("queryable.stars", "sortable.visited", "queryable.title"):
                check(it.find(f"section[aria-label=City] [name='{name}']").is_selected(), name)
        with step("a button with a long text fits where there is little room"):
            it.look(360, "light")
            it.open("/records?c=iCloud.org.example.journal&type=City&f0=note&o0=EQUALS&v0=x")
            check("Add the index queryable to note" in it.text, it.text[:500])
            it.driver.execute_script("[...document.querySelectorAll('button')].at(-1).textContent = 'Add the index queryable to recordName'")
            check_nothing(it.finds())
            it.look(1280, "light")
        with step("whoever opens the server's address comes to their account"):
            it.driver.get(url + "/")
            check(it.driver.current_url.startswith(url + "/account"), it.driver.current_url)
        with step("why a device was refused is on the page, and comes by itself"):
            it.open("/activity?show=failures&c=iCloud.org.example.journal")
            check("Refresh by itself" in it.text and "No such error" in it.text, it.text[:500])
            client.post(client.base("public") + "/records/modify", {"operations": [{"operationType": "forceUpdate", "record": {"recordName": "x", "recordType": "City", "fields": {"stars": {"value": "many"}}}}]}, bearer=anna["token"])
            it.wait(lambda: "expected type INT64" in it.text, "the error does not come")
            table = it.find(".stacked")
            check(it.driver.execute_script("return arguments[0].scrollWidth <= arguments[0].parentElement.clientWidth", table), "the table is cut off")
            Select(it.find("header [name='e']")).select_by_value("production")
            it.press("Show")
            check(it.title == "Sync errors" and "No such error" in it.text, it.text[:500])
            it.open("/activity?show=failures&c=iCloud.org.example.journal")
            check("City:x" in it.text and "not in the cloud" in it.text, it.text[:500])
            check("City:x" not in [link.text for link in it.all(".stacked a")], "a link leads to no record")
        with step("an error whose record was saved since is marked, and alarms no more"):
            it.open("?c=iCloud.org.example.journal")
            check("1 record of 1 account was refused" in it.text, it.text[:500])
            save = {"operationType": "forceUpdate", "record": {"recordName": "x", "recordType": "City", "fields": {"stars": {"value": 3}}}}
            client.post(client.base("public") + "/records/modify", {"operations": [save]}, bearer=anna["token"])
            it.open("/activity?show=failures&c=iCloud.org.example.journal")
            check(any(tag.text.startswith("saved at ") for tag in it.all(".stacked .tag")) and "City:x" in [link.text for link in it.all(".stacked a")], it.text[:500])
            it.open("?c=iCloud.org.example.journal")
            equal(it.title, "Overview")
            check("was refused" not in it.text, it.text[:500])
            client.post(client.base("public") + "/records/modify", {"operations": [{"operationType": "forceDelete", "record": {"recordName": "x"}}]}, bearer=anna["token"])
        with step("what somebody has opened stays as it is, and who has switched it off is not disturbed"):
            it.open("/activity?c=iCloud.org.example.journal")
            it.find("[data-live] summary").click()
            opened = it.find("[data-live] details[open]")
            it.find("[data-live-choice] input").click()
            cloud.admin("records", "set", "oslo", "stars=4", "--container", given["container"])
            it.driver.execute_async_script("setTimeout(arguments[0], 6000)")
            check(opened.is_displayed(), "what was opened is gone")
            it.driver.refresh()
            check(not it.find("[data-live-choice] input").is_selected(), "it goes on")
            it.find("[data-live-choice] input").click()
        with step("subscriptions and notifications are listed"):
            client.as_anna("/subscriptions/modify", {"operations": [{"operationType": "create", "subscription": {"subscriptionID": "trips", "subscriptionType": "zone", "zoneID": {"zoneName": "Trips"}}}]})
            it.open("/activity?show=notifications&c=iCloud.org.example.journal&account=anna%40example.org")
            check("trips" in it.text and "all changes" in it.text, it.text[:800])
    with Browser(url) as it:
        with step("a developer sees somebody's records in production with that person's consent alone"):
            place = f"/records?c={other}&e=production&db=private&account=anna%40example.org&type=Note"
            cloud.admin("records", "set", "note", "text=mine", "--type", "Note", "--container", other, "--scope", "private", "--account", anna["email"])
            cloud.admin("schema", "index", "--container", other, "--type", "Note", "--field", "recordName", "--queryable")
            cloud.admin("schema", "deploy", "--container", other)
            cloud.admin("records", "set", "note", "text=mine", "--type", "Note", "--container", other, "--environment", "production", "--scope", "private", "--account", anna["email"])
            it.sign_in(ben)
            it.open(place)
            check("for operators" in it.text and "note" not in [link.text for link in it.all("td a")], it.text[:500])
            with Browser(url) as person:
                person.sign_in(anna, under="/account")
                form = person.find("#days").find_element("xpath", "ancestor::form")
                form.find_element("css selector", "[name=password]").send_keys(anna["password"])
                person.press("Allow it")
                check("may see and change your private records in production until then" in person.text, person.text[:500])
                it.open(place)
                equal([link.text for link in it.all("td:first-child a")], ["note"])
                person.press("Take back")
                check("evelopers see none of your private records in production" in person.text, person.text)
            it.open(place)
            check("for operators" in it.text, it.text[:500])
            check("done with consent" in cloud.admin("audit", "--container", other), "the log says nothing of it")
        with step("development is begun again, with the password each time"):
            it.open(f"/schema?c={other}")
            it.press("Reset development")
            it.type("password", "wrong")
            it.press("Reset development")
            check("The password is wrong." in it.text, it.text)
            it.type("password", ben["password"])
            it.press("Reset development")
            check("The development environment is empty" in it.text, it.text[:500])
            it.open(f"/records?c={other}&db=private&account=anna%40example.org&type=Note")
            check(not it.all("td:first-child a"), it.text[:500])


def without_scripts(step, url, given):
    with Browser(url, scripts=False) as it:
        with step("what refreshes by itself is read without a script as well"):
            it.sign_in(given["accounts"]["anna"])
            it.open("/activity?show=requests&all=1")
            check("records.modify" in it.text and "Refresh by itself" not in it.text, it.text[:500])
