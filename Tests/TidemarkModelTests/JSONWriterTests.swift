import Foundation
import Testing

@testable import TidemarkModel

/// Goal: the output is valid JSON, in the requested order and spelling. Method: texts compared as a whole, and read by
/// Foundation.
@Suite(.timeLimit(.minutes(30))) struct JSONWriterTests {
    private func text(_ body: (inout JSONWriter) throws -> Void) rethrows -> String {
        var json = JSONWriter()
        try body(&json)
        return String(decoding: json.bytes, as: UTF8.self)
    }

    private func value(_ text: String) throws -> NSObject {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) as? NSObject)
    }

    @Test func `commas are written between values and nowhere else`() throws {
        let written = text { json in
            json.object { json in
                json.member("empty") { _ in }
                json.list("none") { _ in }
                json.member("missing", nil as String?)
                json.member("text", "a\"\\\u{1b}é")
                json.list("numbers") { json in
                    json.integer(Int64.min)
                    json.integer(7 as UInt8)
                    json.number(0.1)
                    json.number(2)
                    json.null()
                    json.array { $0.bool(true) }
                    json.object { $0.member("isIt", false) }
                }
                json.name("a \"name\"")
                json.raw("[1, 2]")
                json.member("size", 3 as Int64)
                json.member("ratio", number: 1.5)
            }
        }
        #expect(
            written == #"{"empty":{},"none":[],"text":"a\"\\\u001bé","numbers":[-9223372036854775808,7,0.1,2.0,null,[true],"#
                + #"{"isIt":false}],"a \"name\"":[1, 2],"size":3,"ratio":1.5}"#)
        let read: NSDictionary = [
            "empty": NSDictionary(), "none": NSArray(), "text": "a\"\\\u{1b}é",
            "numbers": [Int64.min, 7, 0.1, 2, NSNull(), [true], ["isIt": false]] as NSArray, "a \"name\"": [1, 2], "size": 3,
            "ratio": 1.5,
        ]
        #expect(try value(written) == read)
    }

    @Test func `a value that is encoded once equals one that is written each time`() {
        let (name, members) = (
            JSONWriter.encoded(name: "a\u{7f}"),
            JSONWriter.encoded {
                $0.member("b", 1 as Int64)
                $0.member("c", "2")
            }
        )
        let again = text { json in
            json.array { json in
                for _ in 0..<2 {
                    json.object {
                        $0.name(encoded: name)
                        $0.integer(0)
                        $0.members(encoded: members)
                    }
                }
                json.object { $0.members(encoded: members) }
            }
        }
        let record = #""b":1,"c":"2"}"#
        #expect(again == #"[{"a\u007f":0,\#(record),{"a\u007f":0,\#(record),{\#(record)]"#)
        #expect(JSONWriter.quoted("a\u{7f}") == #""a\u007f""#)
    }

    @Test func `lines and pieces together are one text`() throws {
        for count in 0...3 {
            var (json, out) = (JSONWriter(), [] as [UInt8])
            json.beginArray()
            for number in 0..<count {
                json.beginLine()
                json.object { $0.member("n", Int64(number)) }
                json.flush { out += $0 }
            }
            json.beginLine(isLast: true)
            json.endArray()
            out += json.bytes
            let lines = (0..<count).map { "{\"n\":\($0)}" }.joined(separator: ",\n")
            #expect(String(decoding: out, as: UTF8.self) == "[\(count > 0 ? "\n" : "")\(lines)\n]")
        }
    }

    @Test func `a text is appended to other bytes, even if writing fails`() {
        struct Failure: Error {}
        var bytes = Array("before:".utf8)
        JSONWriter.append(to: &bytes) { $0.string("a") }
        #expect(throws: Failure.self) {
            try JSONWriter.append(to: &bytes) { json in
                json.beginArray()
                throw Failure()
            }
        }
        #expect(String(decoding: bytes, as: UTF8.self) == #"before:"a"["#)
    }
}
