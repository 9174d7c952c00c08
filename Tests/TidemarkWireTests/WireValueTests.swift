import Foundation
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkWire

/// Goal: a value means the same on both sides, and values of clients are read as they are meant. Method: values written and read;
/// texts of section 5 of the protocol.
@Suite(.timeLimit(.minutes(30))) struct WireValueTests {
    private let zone = CloudZoneID("notes", owner: "_a")
    private static let asset = CloudAsset(digest: String(repeating: "0123456789abcdef", count: 4), size: 5)

    private func read(_ text: String, known: FieldType? = nil) throws -> WireFieldValue {
        let zone = zone
        return try JSONText.read(Array(text.utf8)) { node throws(CloudError) in
            try WireValueReader(zone: zone) { claim, _ in CloudAsset(digest: claim.digest ?? "", size: claim.size ?? 0) }
                .field(node, known: { known })
        }
    }

    private func reason(_ text: String, known: FieldType? = nil) -> String {
        do {
            return "\(try read(text, known: known))"
        } catch {
            return (error as? CloudError)?.reason ?? "\(error)"
        }
    }

    private static let values: [CloudValue] = [
        .string(""), .string("é\n\"🐢"), .int64(.min), .int64(.max), .int64(0), .double(0.1), .double(-0.0), .double(1e300),
        .double(2),
        .timestamp(1_763_712_000_123_000), .timestamp(1_763_712_000_123_456), .timestamp(-1), .timestamp(.max), .timestamp(.min),
        .bytes(Data()), .bytes(Data([0, 255, 128])),
        .location(
            {
                var place = Location(latitude: 59.33, longitude: -18.06, altitude: 28)
                (place.horizontalAccuracy, place.verticalAccuracy, place.course, place.speed) = (5, 3, 90, 0.5)
                return place
            }()),
        .reference(CloudReference("x")), .reference(CloudReference("x", action: .deleteSelf)), .asset(asset),
        .list([], of: .string), .list([], of: .asset), .list([.int64(1), .int64(-2)], of: .int64),
        .list([.timestamp(1), .timestamp(2_000)], of: .timestamp), .list([.double(1), .double(1.5)], of: .double),
        .list([.asset(asset)], of: .asset), .list([.reference(CloudReference("y", action: .validate))], of: .reference),
    ]

    @Test(arguments: values) func `a value is read as it was written`(value: CloudValue) throws {
        var json = JSONWriter()
        value.write(&json, zone: zone, WireDialect(isExtended: true)) { _ in nil }
        #expect(try read(String(decoding: json.bytes, as: UTF8.self)) == .value(value))
    }

    @Test func `a client without our extension gets no members of ours`() {
        for value in Self.values {
            var json = JSONWriter()
            value.write(&json, zone: zone, WireDialect(isExtended: false)) { _ in "https://x/y" }
            #expect(!String(decoding: json.bytes, as: UTF8.self).contains("tidemark"))
        }
    }

    @Test func `numbers are strings on request`() throws {
        var json = JSONWriter()
        CloudValue.list([.int64(9_007_199_254_740_993)], of: .int64).write(
            &json, zone: zone, WireDialect(isExtended: false, numbersAsStrings: true)
        ) { _ in nil }
        #expect(String(decoding: json.bytes, as: UTF8.self) == #"{"value":["9007199254740993"],"type":"INT64_LIST"}"#)
        #expect(
            try read(#"{"value":["9007199254740993"],"type":"INT64_LIST"}"#)
                == .value(.list([.int64(9_007_199_254_740_993)], of: .int64)))
    }

    @Test func `an asset has all members that clients need`() throws {
        var json = JSONWriter()
        CloudValue.asset(Self.asset).write(&json, zone: zone, WireDialect(isExtended: false)) { _ in "https://x/${f}" }
        try JSONText.read(json.bytes) { node throws(CloudError) in
            let value = try node.required("value")
            for (name, count) in [("fileChecksum", 21), ("referenceChecksum", 21), ("wrappingKey", 16)] {
                let text = value.members.first { $0.name == name }?.value.string ?? ""
                #expect(Data(base64Encoded: text)?.count == count, "\(name)")
            }
            #expect(value["size"]?.integer == 5)
            #expect(value["downloadURL"]?.string == "https://x/${f}")
        }
    }

    @Test(arguments: [
        (#"{"value":"He"}"#, CloudValue.string("He")), (#"{"value":3}"#, .int64(3)), (#"{"value":3.5}"#, .double(3.5)),
        (#"{"value":true}"#, .int64(1)), (#"{"value":{"recordName":"x"}}"#, .reference(CloudReference("x"))),
        (#"{"value":{"latitude":1,"longitude":2}}"#, .location(Location(latitude: 1, longitude: 2))),
        (#"{"value":[1,2]}"#, .list([.int64(1), .int64(2)], of: .int64)),
        (#"{"value":[1,2.5]}"#, .list([.double(1), .double(2.5)], of: .double)),
        (#"{"value":["a"]}"#, .list([.string("a")], of: .string)),
    ])
    func `a value without a type gets the type that it looks like`(text: String, value: CloudValue) throws {
        #expect(try read(text) == .value(value))
    }

    @Test(arguments: [
        (#"{"value":1763712000123}"#, FieldType.timestamp, CloudValue.timestamp(1_763_712_000_123_000)),
        (#"{"value":1.7e12}"#, .timestamp, .timestamp(1_700_000_000_000_000)), (#"{"value":2}"#, .double, .double(2)),
        (#"{"value":"AP8="}"#, .bytes, .bytes(Data([0, 255]))), (#"{"value":[]}"#, .list(of: .string), .list([], of: .string)),
        (#"{"value":[1]}"#, .list(of: .timestamp), .list([.timestamp(1000)], of: .timestamp)),
        (#"{"value":[],"type":"UNKNOWN_LIST"}"#, .list(of: .bytes), .list([], of: .bytes)),
    ])
    func `a value without a type gets the schema's type, if known`(text: String, known: FieldType, value: CloudValue) throws {
        #expect(try read(text, known: known) == .value(value))
    }

    @Test func `null, and an empty list, clear a field`() throws {
        #expect(try read(#"{"value":null}"#) == .cleared)
        #expect(try read(#"{}"#) == .cleared)
        #expect(try read(#"{"value":[]}"#) == .emptyList)
        #expect(try read(#"{"value":""}"#) == .value(.string("")))
    }

    @Test(arguments: [
        (
            #"{"value":"x","type":"TIMESTAMP"}"#,
            "value is no time: a whole number of milliseconds since 1970 was expected. Invalid value, expected type TIMESTAMP"
        ),
        (
            #"{"value":1.5,"type":"TIMESTAMP"}"#,
            "value is no time: a whole number of milliseconds since 1970 was expected. Invalid value, expected type TIMESTAMP"
        ),
        (
            #"{"value":9223372036854775807,"type":"TIMESTAMP"}"#,
            "value is a time beyond what can be kept. Invalid value, expected type TIMESTAMP"
        ),
        (#"{"value":1.5,"type":"INT64"}"#, "value does not fit. Invalid value, expected type INT64"),
        (#"{"value":7,"type":"STRING"}"#, "value does not fit. Invalid value, expected type STRING"),
        (#"{"value":"!","type":"BYTES_LIST"}"#, "value is no list. Invalid value, expected type BYTES_LIST"),
        (#"{"value":["a",1]}"#, "value[1] is of another type than the list's first element"),
        (#"{"value":[null]}"#, "value[0] is a value of no type that a field can have"),
        (#"{"value":{"a":1}}"#, "value is a value of no type that a field can have"),
        (#"{"value":1,"type":"BOOLEAN"}"#, "type is no type of a field: 'BOOLEAN'"),
        (#"{"value":{"latitude":1},"type":"LOCATION"}"#, "value lacks the member 'longitude'"),
        (#"{"value":{"recordName":"x","action":"EAT"}}"#, "value has an action that is not one of NONE, DELETE_SELF, VALIDATE"),
        (
            #"{"value":{"recordName":"x","zoneID":{"zoneName":"other"}}}"#,
            "value.zoneID names another zone than the record's, and references are within one"
        ),
        ("7", "the body is no value of a field: an object with 'value' was expected"),
    ])
    func `an invalid value is refused with its place`(text: String, wanted: String) { #expect(reason(text) == wanted) }
}
