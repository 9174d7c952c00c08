#!/usr/bin/env python3
"""Runs pyicloud's CloudKit client against a served cloud, with PYICLOUD_CK_EXTRA=forbid: it refuses members that it does not know.

What pyicloud can't ask for (making zones, errors of its own making) is asked for plainly. Over TLS its own upload of assets is used; it
refuses to send a file in the clear.
"""

import base64
import os
import re
import tempfile

os.environ["PYICLOUD_CK_EXTRA"] = "forbid"

from pyicloud.common.cloudkit import (  # noqa: E402
    CKFVInt64, CKFVReference, CKFVString, CKModifyOperation, CKQueryFilterBy, CKQueryObject, CKQuerySortBy, CKReference, CKTombstoneRecord,
    CKWriteRecord, CKZoneChangesZoneReq, CKZoneID, CKZoneIDReq, CKErrorItem)
from pyicloud.common.cloudkit.client import CloudKitApiError, CloudKitAuthError, CloudKitContainerClient  # noqa: E402
from pyicloud.common.cloudkit.models import CKFVStringList  # noqa: E402
from pyicloud.exceptions import PyiCloudException  # noqa: E402
from pyicloud.session import PyiCloudSession  # noqa: E402

from steps import Client, Steps, arguments, check, equal, index, only, web_token  # noqa: E402


class Service:
    """The parts of pyicloud's service that its session uses."""

    def __getattr__(self, name):
        return None


class Session(PyiCloudSession):
    """pyicloud's session with its files in a folder of this run, and without its ways to sign in with Apple."""

    def __init__(self, folder, verify):
        self.folder = folder
        super().__init__(Service(), "interop", folder, verify=verify)
        self.trust_env = False

    @property
    def cookiejar_path(self):
        return os.path.join(self.folder, "cookies")

    @property
    def session_path(self):
        return os.path.join(self.folder, "session")


def field(value, kind):
    return {"value": value, "type": kind}


def operation(kind, record_name, record_type="Place", tag=None, **fields):
    return CKModifyOperation(operationType=kind, record=CKWriteRecord(recordName=record_name, recordType=record_type, recordChangeTag=tag, fields=fields))


def rejected(error, *codes):
    """The code of each record in an error that pyicloud has raised."""
    found = [record.get("serverErrorCode") for record in error.payload["records"]]
    equal(found, list(codes), "codes")


def code_of(error):
    """The code of a request that was refused as a whole; pyicloud has it only in the body."""
    found = re.search(r'"serverErrorCode":"(\w+)"', str(error))
    return found.group(1) if found else getattr(error, "code", None)


def altered(token):
    """A token with another byte in its middle."""
    middle = len(token) // 2
    return token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1:]


class raising:
    """Expects an error to be raised, and keeps it."""

    def __init__(self, kind):
        self.kind, self.error = kind, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        check(kind is not None, f"no {self.kind.__name__} was raised")
        self.error = error
        return issubclass(kind, self.kind)


def main():
    given = arguments(__doc__)
    step, plain = Steps("pyicloud", least=25), Client(given)
    token = web_token(plain)
    folder = tempfile.TemporaryDirectory(prefix="tidemark-pyicloud-")
    session = Session(folder.name, given.get("certificate") or True)
    session_parameters = {"ckAPIToken": given["apiToken"], "ckWebAuthToken": token, "remapEnums": True, "getCurrentSyncToken": True,
                          "clientBuildNumber": "2522Project44", "clientMasteringNumber": "2522B2", "clientId": "interop", "dsid": "1"}

    def client(database, **changed):
        return CloudKitContainerClient(plain.base(database), session, session_parameters | changed, bool_param_style="lower")

    private, public = client("private"), client("public")
    zone, other = CKZoneIDReq(zoneName="pyicloud"), CKZoneIDReq(zoneName="pyicloud-other")
    tags, tokens = {}, {}

    with step("zones are made and listed"):
        made = plain.as_anna("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": name}}}
                                                              for name in ("pyicloud", "pyicloud-other", "pyicloud-empty")]})
        equal(len(made["zones"]), 3)
        try:
            found = private.zones_list()
        except CloudKitApiError as error:
            # Apple's answers, too, have members that pyicloud's strict models don't know; no others may be there.
            check(set(error.payload) <= {"zones", "moreComing", "syncToken"}, f"unknown members: {error.payload}")
            for one in error.payload["zones"]:
                check(set(one) <= {"zoneID", "syncToken", "atomic"}, f"unknown members: {one}")
            found = CloudKitContainerClient(plain.base(), session, session_parameters, bool_param_style="lower", validation_extra="ignore").zones_list()
        names = {one.zoneID.zoneName for one in found.zones}
        check({"pyicloud", "pyicloud-other", "pyicloud-empty"} <= names, f"zones: {names}")

    with step("the database's changes name the zones, and give a token"):
        found = private.database_changes()
        check({"pyicloud", "pyicloud-other"} <= {one.zoneID.zoneName for one in found.zones}, str(found))
        check(found.syncToken and found.moreComing is False, str(found))
        tokens["database"] = found.syncToken

    with step("nothing has changed since"):
        equal([one.zoneID.zoneName for one in private.database_changes(sync_token=tokens["database"]).zones], [])

    bytes_value = base64.b64encode(bytes(range(256))).decode()
    location = {"latitude": 59.33, "longitude": 18.06, "horizontalAccuracy": 5.0, "altitude": 28.0}
    all_fields = {
        "string": field("Göteborg \U0001f30a \"quoted\" \\ \u2028", "STRING"), "integer": field(-9007199254740993, "INT64"), "double": field(0.1, "DOUBLE"),
        "whole": field(2, "DOUBLE"), "moment": field(1763712000123, "TIMESTAMP"), "bytes": field(bytes_value, "BYTES"),
        "place": field(location, "LOCATION"), "reference": field({"recordName": "target", "action": "NONE"}, "REFERENCE"),
        "strings": field(["a", "", "c"], "STRING_LIST"), "integers": field([1, -2, 3], "INT64_LIST"), "doubles": field([0.5, 1, -2.25], "DOUBLE_LIST"),
        "moments": field([1, 2], "TIMESTAMP_LIST"), "blobs": field(["AAE=", ""], "BYTES_LIST"), "places": field([location], "LOCATION_LIST"),
        "references": field([{"recordName": "target", "action": "NONE"}], "REFERENCE_LIST"), "empty": field([], "STRING_LIST"),
        "blank": field("", "STRING"), "before": field(-1, "TIMESTAMP"),
    }

    def send_all(name):
        # As other clients write it; pyicloud's own base64 has line breaks and comes below.
        return plain.as_anna("/records/modify", {"zoneID": {"zoneName": "pyicloud"}, "operations": [
            {"operationType": "create", "record": {"recordName": name, "recordType": "Everything", "fields": all_fields}}]})

    with step("a record with a field of every type is made, and read as it was written"):
        only(send_all("everything")["records"])
        found = private.lookup(["everything"], zone_id=zone).records[0]
        equal(set(found.fields), set(all_fields), "fields")
        for name, wanted in all_fields.items():
            got = found.fields[name]
            equal(got.type_tag, wanted["type"], f"type of {name}")
        equal(found.fields["string"].value, all_fields["string"]["value"])
        equal(found.fields["integer"].value, -9007199254740993)
        equal((found.fields["double"].value, found.fields["whole"].value), (0.1, 2.0))
        equal(found.fields["bytes"].value, bytes(range(256)))
        equal(round(found.fields["moment"].value.timestamp() * 1000), 1763712000123)
        equal({key: found.fields["place"].value[key] for key in location}, location)
        equal(found.fields["reference"].value.recordName, "target")
        check(found.fields["reference"].value.zoneID is not None, "a reference has no zone")
        equal(found.fields["strings"].value, ["a", "", "c"])
        equal(found.fields["empty"].value, [])
        equal(found.fields["doubles"].value, [0.5, 1.0, -2.25])

    with step("bytes are taken as the client writes them, in lines"):
        private.modify(zone_id=zone, operations=[operation("create", "blob", "Blob", bytes=field(bytes_value, "BYTES"))])
        equal(private.lookup(["blob"], zone_id=zone).records[0].fields["bytes"].value, bytes(range(256)))
        private.modify(zone_id=zone, operations=[operation("forceDelete", "blob", "Blob")])

    with step("a record has its metadata"):
        found = private.lookup(["everything"], zone_id=zone).records[0]
        check(found.created.userRecordName == found.modified.userRecordName and found.created.deviceID, str(found.created))
        check(found.recordChangeTag and found.deleted is False and found.zoneID.zoneName == "pyicloud", str(found)[:300])
        equal(found.zoneID.zoneType, "REGULAR_CUSTOM_ZONE")

    with step("records are made by the client"):
        answer = private.modify(zone_id=zone, operations=[
            operation("create", f"place-{number:03}", name=field(f"Place {number:03}", "STRING"), rank=field(number % 7, "INT64"),
                      visited=field(1700000000000 + number, "TIMESTAMP")) for number in range(120)])
        equal([record.recordName for record in answer.records], [f"place-{number:03}" for number in range(120)], "order")
        tags.update({record.recordName: record.recordChangeTag for record in answer.records})
        check(answer.syncToken, "no syncToken, though it was asked for")

    with step("an update changes what it names, and the tag"):
        record = private.modify(zone_id=zone, operations=[operation("update", "place-000", tag=tags["place-000"], name=field("Renamed", "STRING"))]).records[0]
        check(record.recordChangeTag != tags["place-000"], "the tag is the same")
        equal((record.fields["name"].value, record.fields["rank"].value), ("Renamed", 0))

    with step("an update with a stale tag is a conflict"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, operations=[operation("update", "place-000", tag=tags["place-000"], name=field("Lost", "STRING"))])
        rejected(raised.error, "CONFLICT")

    with step("to make what is there is a conflict"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, operations=[operation("create", "place-001")])
        rejected(raised.error, "CONFLICT")

    with step("an update of what is not there is not found"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, operations=[operation("update", "nowhere", tag="1")])
        rejected(raised.error, "NOT_FOUND")

    with step("an atomic request fails as a whole"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, atomic=True, operations=[
                operation("create", "atomic-1"), operation("update", "place-000", tag=tags["place-000"]), operation("create", "atomic-2")])
        rejected(raised.error, "ATOMIC_ERROR", "CONFLICT", "ATOMIC_ERROR")
        found = private.lookup(["atomic-1", "atomic-2"], zone_id=zone).records
        equal([record.serverErrorCode for record in found], ["NOT_FOUND", "NOT_FOUND"])

    with step("a request that is not atomic does what it can"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, atomic=False, operations=[
                operation("create", "loose-1"), operation("create", "place-001"), operation("create", "loose-2")])
        rejected(raised.error, None, "CONFLICT", None)
        equal([type(record).__name__ for record in private.lookup(["loose-1", "loose-2"], zone_id=zone).records], ["CKRecord", "CKRecord"])

    with step("forceUpdate makes what is not there, and takes no tag"):
        private.modify(zone_id=zone, operations=[operation("forceUpdate", "forced", name=field("One", "STRING"), rank=field(1, "INT64"))])
        record = private.modify(zone_id=zone, operations=[operation("forceUpdate", "forced", name=field("Two", "STRING"))]).records[0]
        equal((record.fields["name"].value, record.fields["rank"].value), ("Two", 1))

    with step("forceReplace clears what it does not name"):
        record = private.modify(zone_id=zone, operations=[operation("forceReplace", "forced", name=field("Three", "STRING"))]).records[0]
        equal(set(record.fields), {"name"})

    with step("replace asks for the tag"):
        now = private.lookup(["forced"], zone_id=zone).records[0].recordChangeTag
        record = private.modify(zone_id=zone, operations=[operation("replace", "forced", tag=now, rank=field(4, "INT64"))]).records[0]
        equal(set(record.fields), {"rank"})

    with step("to delete what is not there by force is well"):
        record = private.modify(zone_id=zone, operations=[operation("forceDelete", "never-there")]).records[0]
        check(isinstance(record, CKTombstoneRecord), str(record))

    with step("delete asks for the tag"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, operations=[operation("delete", "place-000", tag=tags["place-000"])])
        rejected(raised.error, "CONFLICT")

    with step("a lookup answers in order, with what was not found"):
        found = private.lookup(["place-002", "nowhere", "place-001"], zone_id=zone, desired_keys=["rank"]).records
        equal([record.recordName for record in found], ["place-002", "nowhere", "place-001"])
        check(isinstance(found[1], CKErrorItem) and found[1].serverErrorCode == "NOT_FOUND", str(found[1]))
        equal(set(found[0].fields), {"rank"}, "desired keys")

    def query(*filters, sort=None, **more):
        return private.query(query=CKQueryObject(recordType="Place", filterBy=list(filters) or None, sortBy=sort), zone_id=zone, **more)

    with step("a type that nobody has made queryable can't be queried"):
        with raising(PyiCloudException) as raised:
            query()
        check(code_of(raised.error) == "BAD_REQUEST" and "Field 'recordName' is not marked queryable" in str(raised.error), repr(raised.error))
        index(given, "Place", "recordName", "visited", "rank", "name")

    with step("a query in pages finds each record once, in order"):
        found, marker, pages = [], None, 0
        while True:
            page = query(sort=[CKQuerySortBy(fieldName="visited", ascending=False)], results_limit=50, continuation=marker, desired_keys=["visited"])
            check(len(page.records) <= 50, "a page is too large")
            found += [record.recordName for record in page.records if "visited" in record.fields]
            marker, pages = page.continuationMarker, pages + 1
            if not marker:
                break
            check(pages < 20, "it does not end")
        equal(found[:3], ["place-119", "place-118", "place-117"])
        equal(sorted(found), [f"place-{number:03}" for number in range(120)])

    with step("a query by integer"):
        found = query(CKQueryFilterBy(comparator="EQUALS", fieldName="rank", fieldValue=CKFVInt64(type="INT64", value=3)))
        equal({record.recordName for record in found.records}, {f"place-{number:03}" for number in range(120) if number % 7 == 3})

    with step("a query by range and prefix"):
        found = query(CKQueryFilterBy(comparator="GREATER_THAN_OR_EQUALS", fieldName="rank", fieldValue=CKFVInt64(type="INT64", value=5)),
                      CKQueryFilterBy(comparator="BEGINS_WITH", fieldName="name", fieldValue=CKFVString(type="STRING", value="Place 11")))
        equal({record.recordName for record in found.records}, {f"place-{number:03}" for number in range(110, 120) if number % 7 >= 5})

    with step("a query by membership"):
        found = query(CKQueryFilterBy(comparator="IN", fieldName="name", fieldValue=CKFVStringList(type="STRING_LIST", value=["Place 005", "Place 009", "x"])))
        equal({record.recordName for record in found.records}, {"place-005", "place-009"})

    with step("a query by the record's name"):
        found = query(CKQueryFilterBy(comparator="EQUALS", fieldName="___recordID", fieldValue=CKFVReference(type="REFERENCE", value=CKReference(recordName="place-042"))))
        equal([record.recordName for record in found.records], ["place-042"])

    with step("a query gives the zone's token, where it is asked for"):
        tokens["query"] = private.query_sync_token(query=CKQueryObject(recordType="Place"), zone_id=zone)
        check(tokens["query"], "there is none")

    def changes(token=None, **more):
        return list(private.iter_changes(zone_req=CKZoneChangesZoneReq(zoneID=CKZoneID(zoneName="pyicloud"), syncToken=token, **more), results_limit=50))

    with step("the zone's changes come in pages, each record once"):
        pages = changes()
        check(len(pages) >= 3 and all(len(page.records) <= 50 for page in pages), f"{[len(page.records) for page in pages]}")
        names = [record.recordName for page in pages for record in page.records if not isinstance(record, CKTombstoneRecord)]
        equal(len(names), len(set(names)), "names")
        check({f"place-{number:03}" for number in range(120)} | {"everything", "forced", "loose-1", "loose-2"} == set(names), str(sorted(names))[:400])
        tokens["zone"] = pages[-1].syncToken

    with step("the same token has the same answer, and the query's token goes as well"):
        for token in (tokens["zone"], tokens["zone"], tokens["query"]):
            equal([record for page in changes(token) for record in page.records], [])

    with step("what is deleted comes as a tombstone"):
        now = private.lookup(["place-003"], zone_id=zone).records[0].recordChangeTag
        private.modify(zone_id=zone, operations=[operation("delete", "place-003", tag=now), operation("forceDelete", "place-004"),
                                                 operation("forceUpdate", "place-005", name=field("Changed", "STRING"))])
        records = [record for page in changes(tokens["zone"]) for record in page.records]
        equal({record.recordName: isinstance(record, CKTombstoneRecord) for record in records}, {"place-003": True, "place-004": True, "place-005": False})
        equal(private.lookup(["place-003"], zone_id=zone).records[0].serverErrorCode, "NOT_FOUND")

    with step("changes have only the fields that are asked for"):
        record = [record for page in changes(tokens["zone"], desiredKeys=["rank"]) for record in page.records if record.recordName == "place-005"][0]
        equal(set(record.fields), {"rank"})

    with step("the database names the zone that has changed, and no other"):
        equal([one.zoneID.zoneName for one in private.database_changes(sync_token=tokens["database"]).zones], ["pyicloud"])

    with step("a token that is none is refused for its zone"):
        with raising(CloudKitApiError) as raised:
            changes("no-token")
        check("BAD_REQUEST" in str(raised.error), str(raised.error))

    with step("a zone that is not there is not found"):
        with raising(CloudKitApiError) as raised:
            list(private.iter_changes(zone_req=CKZoneChangesZoneReq(zoneID=CKZoneID(zoneName="nowhere"))))
        check("ZONE_NOT_FOUND" in str(raised.error), str(raised.error))

    with step("a record whose target is missing can't be made with VALIDATE"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, operations=[operation("create", "dangling", "Visit", place=field({"recordName": "no-such", "action": "VALIDATE"}, "REFERENCE"))])
        rejected(raised.error, "VALIDATING_REFERENCE_ERROR")

    with step("what holds on to a record goes with it"):
        private.modify(zone_id=other, operations=[operation("create", "owner", "Journey")])
        private.modify(zone_id=other, operations=[operation("create", "held", "Visit", journey=field({"recordName": "owner", "action": "DELETE_SELF"}, "REFERENCE"))])
        private.modify(zone_id=other, operations=[operation("forceDelete", "owner", "Journey")])
        equal(private.lookup(["held"], zone_id=other).records[0].serverErrorCode, "NOT_FOUND")

    with step("a value of another type than the field's is refused, for its record"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, atomic=False, operations=[operation("create", "wrong", visited=field("yesterday", "STRING"))])
        rejected(raised.error, "BAD_REQUEST")

    picture = os.urandom(300_000)

    with step("an asset goes up and comes down"):
        if plain.url.startswith("https:"):
            uploaded = private.upload_asset(record_type="Picture", field_name="image", record_name="picture", data=picture, zone_id=zone).model_dump(exclude_none=True)
        else:
            reserved = plain.as_anna("/assets/upload", {"zoneID": {"zoneName": "pyicloud"}, "tokens": [
                {"recordName": "picture", "recordType": "Picture", "fieldName": "image"}]})["tokens"]
            answer = plain.post(reserved[0]["url"], data=picture)
            equal(answer.status_code, 200, answer.text[:300])
            uploaded = answer.json()["singleFile"]
        check({"fileChecksum", "size", "receipt", "wrappingKey", "referenceChecksum"} <= set(uploaded), str(uploaded))
        equal(uploaded["size"], len(picture))
        private.modify(zone_id=zone, operations=[operation("create", "picture", "Picture", image=field(uploaded, "ASSETID"))])
        asset = private.lookup(["picture"], zone_id=zone).records[0].fields["image"].value
        equal((asset.size, asset.fileChecksum), (len(picture), uploaded["fileChecksum"]))
        check(asset.wrappingKey and asset.referenceChecksum and getattr(asset, "receipt", None) is None, str(asset))
        address = asset.downloadURL.replace("${f}", "a%20picture.jpg")
        check(private.download_asset_bytes(address) == picture, "it came back as another")
        check(b"".join(private.download_asset_stream(address)) == picture, "it came back as another, streamed")

    with step("a forged receipt is refused"):
        with raising(CloudKitApiError) as raised:
            private.modify(zone_id=zone, operations=[operation("create", "forged", "Picture", image=field(uploaded | {"receipt": "Zm9yZ2Vk"}, "ASSETID"))])
        rejected(raised.error, "BAD_REQUEST")

    with step("an asset's value that is written back is no change"):
        record = private.lookup(["picture"], zone_id=zone).records[0]
        value = record.fields["image"].value.model_dump(exclude_none=True)
        private.modify(zone_id=zone, operations=[operation("update", "picture", "Picture", tag=record.recordChangeTag, image=field(value, "ASSETID"))])
        asset = private.lookup(["picture"], zone_id=zone).records[0].fields["image"].value
        check(private.download_asset_bytes(asset.downloadURL.replace("${f}", "x")) == picture, "it came back as another")

    with step("a query over all zones"):
        index(given, "Picture", "recordName")
        found = private.query(query=CKQueryObject(recordType="Picture"), zone_wide=True)
        equal([record.recordName for record in found.records], ["picture"])

    with step("the public database takes records from who is signed in, and shows them to others"):
        default = CKZoneIDReq(zoneName="_defaultZone")
        record = public.modify(zone_id=default, operations=[operation("forceUpdate", "notice", "Notice", text=field("Hello", "STRING"))]).records[0]
        anyone = CloudKitContainerClient(plain.base("public"), session, {"ckAPIToken": given["apiToken"]})
        equal(anyone.lookup(["notice"], zone_id=default).records[0].fields["text"].value, "Hello")
        equal(record.created.userRecordName, given["accounts"]["anna"].get("userRecordName") or record.created.userRecordName)

    with step("somebody else's zones are not to be seen"):
        ben = client("private", ckWebAuthToken=web_token(plain, "ben"))
        with raising(PyiCloudException) as raised:
            check(all(isinstance(record, CKErrorItem) for record in ben.lookup(["place-001"], zone_id=zone).records), "somebody else's record")
            raise CloudKitApiError("each by itself")
        check(code_of(raised.error) in ("ZONE_NOT_FOUND", None), repr(raised.error))

    with step("a token that is altered is refused"):
        with raising(PyiCloudException) as raised:
            client("private", ckWebAuthToken=altered(token)).zones_list()
        check(isinstance(raised.error, CloudKitAuthError) or code_of(raised.error) == "AUTHENTICATION_FAILED", repr(raised.error))

    with step("all that was made can be deleted with its zones"):
        gone = plain.as_anna("/zones/modify", {"operations": [{"operationType": "delete", "zone": {"zoneID": {"zoneName": name}}}
                                                              for name in ("pyicloud", "pyicloud-other", "pyicloud-empty")]})
        check(all("serverErrorCode" not in one for one in gone["zones"]), str(gone))
        deleted = {one.zoneID.zoneName for one in private.database_changes(sync_token=tokens["database"]).zones if one.deleted}
        check({"pyicloud", "pyicloud-other"} <= deleted, str(deleted))

    folder.cleanup()
    step.end()


if __name__ == "__main__":
    main()
