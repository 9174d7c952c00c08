"""A served cloud with sample data: a public guide with pictures, a person's shared journal, an operator and a developer."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Interop"))

import start_server  # noqa: E402
from browser import HOSTILE  # noqa: E402
from provider import Provider  # noqa: E402
from steps import Client  # noqa: E402

PICTURES = sorted((HERE.parents[1] / "Examples/journal/pictures").glob("*.jpg"))
CITIES = [
    ("oslo", "Oslo", 5, (59.91, 10.75), "A harbour, an opera house to walk on, and forests at the end of the tram."),
    ("bergen", "Bergen", 4, (60.39, 5.32), "Rain on wooden houses."),
    ("tromso", "Tromsø", 5, (69.65, 18.96), "The sun does not set in June."),
    ("odda", "Odda", 3, (60.07, 6.55), None),
    ("roros", "Røros", 4, (62.57, 11.38), "A town of copper, in the snow."),
]


def fill(client, given):
    """Puts sample records into the public and a private database."""
    anna = given["accounts"]["anna"]["token"]

    def modify(database, zone, operations, bearer=anna):
        answer = client.post(client.base(database) + "/records/modify", {"zoneID": {"zoneName": zone}, "atomic": False, "operations": operations}, bearer=bearer)
        if answer.status_code != 200 or any("serverErrorCode" in record for record in answer.json()["records"]):
            sys.exit(f"records/modify: {answer.status_code} {answer.text[:800]}")
        return answer.json()["records"]

    def uploaded(database, zone, record, kind, field, data):
        answer = client.post(client.base(database) + "/assets/upload", {"zoneID": {"zoneName": zone}, "tokens": [{"recordName": record, "recordType": kind, "fieldName": field}]}, bearer=anna)
        if answer.status_code != 200:
            sys.exit(f"assets/upload: {answer.status_code} {answer.text[:800]}")
        address = answer.json()["tokens"][0]["url"]
        return client.post(address, data=data).json()["singleFile"]

    operations = []
    for number, (name, title, stars, (latitude, longitude), note) in enumerate(CITIES):
        fields = {"title": {"value": title}, "stars": {"value": stars, "type": "INT64"}, "place": {"value": {"latitude": latitude, "longitude": longitude}},
                  "visited": {"value": 1_780_000_000_000 + number * 86_400_000, "type": "TIMESTAMP"}, "tags": {"value": ["norway", "coast" if number % 2 else "fjord"], "type": "STRING_LIST"}}
        if note:
            fields["note"] = {"value": note}
        if number < len(PICTURES):
            fields["picture"] = {"value": uploaded("public", "_defaultZone", name, "City", "picture", PICTURES[number].read_bytes()), "type": "ASSETID"}
        if number:
            fields["next"] = {"value": {"recordName": CITIES[number - 1][0], "action": "NONE"}, "type": "REFERENCE"}
        operations.append({"operationType": "forceUpdate", "record": {"recordName": name, "recordType": "City", "fields": fields}})
    operations.append({"operationType": "forceUpdate", "record": {"recordName": "hostile", "recordType": "City", "fields": {"title": {"value": HOSTILE}, "stars": {"value": 1, "type": "INT64"}}}})
    modify("public", "_defaultZone", operations)
    client.as_anna("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "Trips"}}}]})
    modify("private", "Trips", [
        {"operationType": "forceUpdate", "record": {"recordName": f"day-{number}", "recordType": "Day", "fields": {"text": {"value": f"Day {number} of the trip"}, "number": {"value": number, "type": "INT64"}}}}
        for number in range(1, 13)])
    answer = client.post(client.own("/private/shares/create"), {"zoneID": {"zoneName": "Trips"}, "title": "Summer trip", "publicPermission": "READ_ONLY"}, bearer=anna)
    if answer.status_code != 200:
        sys.exit(f"shares/create: {answer.status_code} {answer.text[:800]}")
    share = answer.json()

    def asked(path, body):
        reply = client.post(client.own("/private/" + path), body | {"zoneID": {"zoneName": "Trips"}, "recordName": share["recordName"]}, bearer=anna)
        if reply.status_code != 200:
            sys.exit(f"{path}: {reply.status_code} {reply.text[:800]}")
        return reply.json()

    # A link for everybody, one for Ben only, and a revoked one.
    given["links"] = {"open": asked("links/make", {}), "revoked": asked("links/make", {})}
    asked("links/revoke", {"id": given["links"]["revoked"]["id"]})


def start(place, options):
    """Starts a server over a cloud with sample data; returns the server and the credentials."""
    cloud = place.cloud
    given = start_server.fill(cloud)
    provider = Provider(options.folder)
    port = start_server.free_port()
    public = ["--public-url", f"{'https' if options.tls else 'http'}://127.0.0.1:{port}"]
    server = place.serve(*start_server.UNLIMITED, *public, *provider.options(options.folder), tls=options.tls, port=port)
    given |= {"pids": place.pids, "folders": list(map(str, place.folders))}
    start_server.enter(server, cloud, given)
    given["provider"] = provider
    fill(Client(given), given)
    cloud.admin("operator", "add", given["accounts"]["anna"]["email"])
    cloud.admin("operator", "add", given["accounts"]["ben"]["email"], "--role", "developer", "--container", given["foreignContainer"])
    for field in ("recordName", "title"):
        cloud.admin("schema", "index", "--container", given["container"], "--type", "City", "--field", field, "--queryable")
    cloud.admin("schema", "index", "--container", given["container"], "--type", "Day", "--field", "recordName", "--queryable")
    cloud.admin("account", "set", given["accounts"]["ben"]["email"], "--quota", "20MB")
    return server, given
