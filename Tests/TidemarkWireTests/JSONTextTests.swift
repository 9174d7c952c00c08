import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkWire

/// Goal: malformed text from outside is refused, at limited cost. Method: texts with one fault each.
@Suite(.timeLimit(.minutes(30))) struct JSONTextTests {
    private func refusal(_ text: String) -> String {
        do throws(CloudError) {
            try JSONText.read(Array(text.utf8)) { _ throws(CloudError) in () }
            return "read"
        } catch {
            return error.code == .invalidArguments ? error.reason : "\(error)"
        }
    }

    @Test(arguments: [
        ("", "the body is not valid JSON"), ("{", "the body is not valid JSON"), ("{}{}", "the body is not valid JSON"),
        ("{\"a\":1,}", "the body is not valid JSON"), ("{'a':1}", "the body is not valid JSON"),
        ("[1 2]", "the body is not valid JSON"),
        ("\"\u{1}\"", "the body is not valid JSON"), ("nul", "the body is not valid JSON"),
        ("[\"\\ud800\"]", "the body is not valid JSON"),
        ("[18446744073709551616]", "the JSON has a number that is written wrongly or is beyond 64 bits"),
        ("[1e999]", "the JSON has a number that is written wrongly or is beyond 64 bits"),
        ("[01]", "the JSON has a number that is written wrongly or is beyond 64 bits"),
        ("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}", "the JSON has an object with the member 'c' twice"),
        ("{\"a\":1,\"\\u0061\":2}", "the JSON has an object with the member 'a' twice"),
    ])
    func `a malformed text is refused, and the reason names the fault`(text: String, reason: String) {
        #expect(refusal(text) == reason)
    }

    @Test func `a duplicate name among many is found`() {
        let members = (0..<1000).map { "\"m\($0)\":\($0)" }
        #expect(refusal("{\(members.joined(separator: ","))}") == "read")
        #expect(
            refusal("{\(members.joined(separator: ",")),\"m500\":0}") == "the JSON has an object with the member 'm500' twice")
    }

    @Test func `depth and number of values are limited`() {
        let (deep, most) = (JSONText.depth, JSONText.values)
        #expect(refusal(String(repeating: "[", count: deep - 1) + String(repeating: "]", count: deep - 1)) == "read")
        #expect(
            refusal(String(repeating: "[", count: deep + 1) + String(repeating: "]", count: deep + 1))
                == "the JSON is nested deeper than 32 levels")
        #expect(refusal(String(repeating: "[", count: 1_000_000)).hasPrefix("the JSON has more than"))
        #expect(refusal("[" + String(repeating: "1,", count: most) + "1]").hasPrefix("the JSON has more than \(most) values"))
    }

    @Test func `invalid UTF-8 is refused`() {
        #expect(throws: CloudError.self) {
            try JSONText.read([0x22, 0xff, 0x22] as [UInt8]) { _ throws(CloudError) in () }
        }
    }

    @Test func `numbers keep the values of their text`() throws {
        try JSONText.read(Array("[1,1.0,-9223372036854775808,9223372036854775807,18446744073709551615,1e3]".utf8)) {
            node throws(CloudError) in
            let elements = Array(node.elements)
            #expect(elements.map(\.integer) == [1, nil, .min, .max, nil, nil])
            #expect(elements.map(\.wholeNumber) == [1, 1, .min, .max, nil, 1000])
            #expect(elements.map(\.number)[1] == 1)
        }
    }

    @Test func `a value knows its path`() throws {
        try JSONText.read(Array(#"{"a":[{"b":1},{"b":{"c":[true,"x"]}}],"d":null}"#.utf8)) { node throws(CloudError) in
            #expect(node.place == "")
            let list = try node.required("a")
            let value = try Array(list.elements)[1].required("b").required("c")
            #expect(Array(value.elements)[1].place == "a[1].b.c[1]")
            #expect(node["d"] == nil)
            let error = value.refusal("is wrong")
            #expect(error.reason == "a[1].b.c is wrong")
        }
    }

    @Test func `written text is read as the same value`() throws {
        let text = "quote \" backslash \\ line \n tab \t notifier \u{7} zero \u{0} é 🐢 \u{2028}"
        var json = JSONWriter()
        json.object {
            $0.member("text", text)
            $0.member("number", Int64.min)
            $0.member("double", number: 0.1)
            $0.member("none", nil as String?)
            $0.list("list") {
                $0.bool(true)
                $0.null()
                $0.object { _ in }
                $0.array { _ in }
            }
        }
        try JSONText.read(json.bytes) { node throws(CloudError) in
            #expect(node["text"]?.string == text)
            #expect(node["number"]?.integer == .min)
            #expect(node["double"]?.number == 0.1)
            #expect(node.memberCount == 4)
            #expect(node["list"]?.elementCount == 4)
            #expect(node.text == String(decoding: json.bytes, as: UTF8.self))
        }
    }
}
