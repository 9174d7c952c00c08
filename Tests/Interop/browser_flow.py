#!/usr/bin/env python3
"""Signs in as a browser does: it is sent to the sign-in page, posts the form, returns with a token, and gets a new one with each answer."""

import concurrent.futures
import re
import urllib.parse

from steps import Client, Steps, arguments, check, equal, post_form, redirect_address, refused, web_token


def main():
    given = arguments(__doc__)
    step, client = Steps("browser", least=15), Client(given)
    api, kept = given["apiToken"], {}

    with step("who is not signed in is told where to, with 421"):
        kept["address"] = redirect_address(client, api)
        check(kept["address"].startswith(client.url + "/"), f"another server: {kept['address']}")

    with step("an anonymous write is told so as well"):
        answer = client.post(client.base("public") + "/records/modify", {"operations": [{"operationType": "create", "record": {"recordType": "City"}}]}, api=api)
        check(refused(answer, 421, "AUTHENTICATION_REQUIRED").get("redirectURL"), "no redirectURL")

    with step("without an API token it is 401"):
        refused(client.post(client.base() + "/zones/list", {}), 401, "AUTHENTICATION_FAILED")

    with step("the page is a form, for this site only"):
        page = client.get(kept["address"])
        equal(page.status_code, 200)
        policy = page.headers.get("Content-Security-Policy", "")
        check("frame-ancestors 'none'" in policy or page.headers.get("X-Frame-Options", "").upper() == "DENY", "others may frame it")
        check("no-store" in page.headers.get("Cache-Control", ""), "it may be kept")

    with step("a wrong password gives the page again, and no token"):
        answer = post_form(client, kept["address"], "anna", password="wrong")
        check(answer.status_code in (200, 400, 401, 403), str(answer.status_code))
        check("ckWebAuthToken" not in answer.headers.get("Location", "") and "<form" in answer.text, answer.text[:300])
        kept["wrong"] = answer

    with step("an account that is not there is answered the same"):
        given["accounts"]["nobody"] = {"email": "nobody@example.org", "password": "wrong"}
        answer = post_form(client, kept["address"], "nobody")
        equal(answer.status_code, kept["wrong"].status_code)
        tidy = lambda text: re.sub(r"[\w.+-]+@[\w.-]+|(value|nonce)=\"[^\"]*\"", "", text)
        equal(tidy(answer.text), tidy(kept["wrong"].text), "the page")

    with step("what is typed is not part of the page"):
        given["accounts"]["script"] = {"email": "\"><script>alert(1)</script>@example.org", "password": "x"}
        check("<script>alert(1)" not in post_form(client, kept["address"], "script").text, "a script is in the page")

    with step("the right one leads to the callback, with a token"):
        answer = post_form(client, kept["address"], "anna")
        check(answer.status_code in (302, 303), f"{answer.status_code} {answer.text[:300]}")
        location = answer.headers["Location"]
        check(location.startswith(given["callback"]), location)
        kept["token"] = urllib.parse.parse_qs(urllib.parse.urlsplit(location).query)["ckWebAuthToken"][0]

    with step("the token opens the private database, and the answer has the next one"):
        answer = client.post(client.base() + "/zones/list", {}, api=api, web=kept["token"])
        equal(answer.status_code, 200, answer.text[:300])
        kept["next"] = answer.headers.get("X-Apple-CloudKit-Web-Auth-Token")
        check(kept["next"] and kept["next"] != kept["token"], f"no other token: {kept['next']}")

    with step("tokens follow one another, and none is there twice"):
        seen, token = {kept["token"]}, kept["next"]
        for _ in range(5):
            check(token not in seen, "a token came twice")
            seen.add(token)
            answer = client.post(client.base() + "/zones/list", {}, api=api, web=token)
            equal(answer.status_code, 200)
            token = answer.headers["X-Apple-CloudKit-Web-Auth-Token"]

    with step("the old one is still accepted"):
        equal(client.post(client.base() + "/zones/list", {}, api=api, web=kept["token"]).status_code, 200)

    with step("many at once may use one token"):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: Client(given).post(client.base() + "/zones/list", {}, api=api, web=kept["token"]).status_code, range(32)))
        equal(set(answers), {200})

    with step("a space is taken for the plus that it was"):
        answer = client.post(client.base() + "/zones/list", {}, params={"ckAPIToken": api, "ckWebAuthToken": kept["token"].replace("+", " ")})
        equal(answer.status_code, 200)

    with step("a forged token is refused"):
        token = kept["token"]
        for index in range(0, len(token), max(1, len(token) // 12)):
            forged = token[:index] + ("A" if token[index] != "A" else "B") + token[index + 1:]
            answer = client.post(client.base() + "/zones/list", {}, api=api, web=forged)
            check(answer.status_code in (401, 421), f"place {index}: {answer.status_code} {answer.text[:200]}")
            refused(answer, answer.status_code, "AUTHENTICATION_FAILED" if answer.status_code == 401 else "AUTHENTICATION_REQUIRED")
            check("X-Apple-CloudKit-Web-Auth-Token" not in answer.headers, "a token for who has none")

    with step("a token is for its container"):
        answer = client.post(client.base(container=given["foreignContainer"]) + "/zones/list", {}, api=given["foreignAPIToken"], web=kept["token"])
        check(answer.status_code in (401, 421), f"{answer.status_code} {answer.text[:200]}")
        answer = client.post(client.base(environment="production") + "/zones/list", {}, api=api, web=kept["token"])
        refused(answer, 401, "AUTHENTICATION_FAILED")

    with step("a token does without none of its API tokens"):
        refused(client.post(client.base() + "/zones/list", {}, web=kept["token"]), 401, "AUTHENTICATION_FAILED")
        refused(client.post(client.base() + "/zones/list", {}, api=given["revokedAPIToken"], web=kept["token"]), 401, "AUTHENTICATION_FAILED")

    with step("the popup's page tells its opener, and nobody else"):
        address = redirect_address(client, given["popupAPIToken"])
        answer = post_form(client, address, "ben")
        equal(answer.status_code, 200, answer.text[:300])
        check("postMessage" in answer.text and "ckWebAuthToken" in answer.text and "opener" in answer.text, answer.text[:600])
        check(re.search(r"postMessage\([^;]*[\"']\*[\"']\s*\)", answer.text) is None, "it tells everybody")
        check(given["origin"] in answer.text.replace("\\/", "/"), "it names no origin")
        found = re.search(r"ckWebAuthToken[\"']?\s*[:=]\s*[\"']([A-Za-z0-9+/=_-]+)", answer.text)
        check(found, answer.text[:600])
        equal(client.post(client.base() + "/zones/list", {}, api=given["popupAPIToken"], web=found.group(1)).status_code, 200)

    with step("a sign-in address that is altered leads nowhere"):
        parts = urllib.parse.urlsplit(kept["address"])
        for key, values in urllib.parse.parse_qs(parts.query).items():
            value = values[0]
            middle = len(value) // 2
            query = urllib.parse.urlencode({key: value[:middle] + ("A" if value[middle:middle + 1] != "A" else "B") + value[middle + 1:]})
            answer = client.get(urllib.parse.urlunsplit(parts._replace(query=query)))
            check(400 <= answer.status_code < 500, f"{key}: {answer.status_code}")
        answer = client.get(kept["address"], params={"callback": "https://evil.example.org", "redirect": "https://evil.example.org"})
        check("evil.example.org" not in answer.text and "evil.example.org" not in answer.headers.get("Location", ""), "it leads elsewhere")

    with step("a browser may ask from where its API token is for"):
        origin = given["origin"]
        answer = client.post(client.base() + "/records/query", method="OPTIONS", headers={
            "Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-apple-cloudkit-request-keyid"})
        check(answer.status_code in (200, 204), f"{answer.status_code}")
        allowed = answer.headers.get("Access-Control-Allow-Origin")
        check(allowed in (origin, "*"), f"allowed: {allowed}")
        check("POST" in answer.headers.get("Access-Control-Allow-Methods", ""), str(answer.headers))
        answer = client.post(client.base() + "/zones/list", {}, api=given["popupAPIToken"], web=web_token(client), headers={"Origin": origin})
        check("x-apple-cloudkit-web-auth-token" in answer.headers.get("Access-Control-Expose-Headers", "").lower(), str(answer.headers))
        equal(answer.headers.get("Access-Control-Allow-Origin"), origin)

    with step("who stays signed in has a token as well, and is who they are"):
        token = web_token(client, "ben", stay=True)
        answer = client.get(client.base("public") + "/users/caller", api=api, web=token)
        equal((answer.status_code, answer.json().get("userRecordName")), (200, given["accounts"]["ben"]["userRecordName"]))

    step.end()


if __name__ == "__main__":
    main()
