import Foundation
import Testing

@testable import TidemarkServer

/// Goal: a form has the values that a browser sends, in any encoding of forms, and a malformed body has none. Method: bodies as
/// browsers make them, and broken ones.
@Suite(.timeLimit(.minutes(30))) struct PostedFormTests {
    private static let type = "multipart/form-data; boundary=----WebKitFormBoundaryAbC123"

    private func parts(_ parts: [(head: String, content: [UInt8])], isEnded: Bool = true) -> [UInt8] {
        var body: [UInt8] = []
        for part in parts {
            body += Array("------WebKitFormBoundaryAbC123\r\nContent-Disposition: form-data; \(part.head)\r\n\r\n".utf8)
            body += part.content + [0x0d, 0x0a]
        }
        return body + (isEnded ? Array("------WebKitFormBoundaryAbC123--\r\n".utf8) : [])
    }

    @Test func `a form's values and files are found by their names`() {
        let picture: [UInt8] = [0x0d, 0x0a, 0x2d, 0x2d, 0x00, 0xff, 0x0d, 0x0a]
        let body = parts([
            (#"name="is.title""#, Array("Oslo & <b>\r\nä".utf8)), (#"name="empty""#, []),
            ("name=\"file.photo\"; filename=\"a\\\"; name=.png\"\r\nContent-Type: image/png", picture),
            (#"name="none"; filename="""# + "\r\nContent-Type: application/octet-stream", []),
            (#"name="is.title""#, Array("again".utf8)), (#"name="a%22b""#, Array("c".utf8)),
        ])
        let form = PostedForm(body, contentType: Self.type, most: 100)
        #expect(form.values == ["is.title": "Oslo & <b>\r\nä", "empty": "", "a\"b": "c"])
        #expect(form.files == ["file.photo": Data(picture), "none": Data()])
    }

    @Test func `a URL-encoded form is read as well`() {
        let body = Array("is.title=Oslo+%26+Bergen&empty=&is.title=again".utf8)
        for type in [nil, "application/x-www-form-urlencoded", "text/plain"] {
            let form = PostedForm(body, contentType: type, most: 100)
            #expect(form.values == ["is.title": "Oslo & Bergen", "empty": ""] && form.files.isEmpty)
        }
    }

    @Test func `a malformed form has no values, and the number of parts is limited`() {
        let whole = parts([(#"name="a""#, Array("1".utf8)), (#"name="b""#, Array("2".utf8))])
        #expect(PostedForm(whole, contentType: Self.type, most: 1).values == ["a": "1"])
        #expect(PostedForm(whole, contentType: "multipart/form-data", most: 100).values.isEmpty)
        #expect(PostedForm(whole, contentType: "multipart/form-data; boundary=other", most: 100).values.isEmpty)
        // A part without an end does not count.
        let cut = parts([(#"name="a""#, Array("1".utf8)), (#"name="b""#, Array("2".utf8))], isEnded: false)
        #expect(PostedForm(cut, contentType: Self.type, most: 100).values == ["a": "1"])
        for length in 0..<whole.count { _ = PostedForm(Array(whole.prefix(length)), contentType: Self.type, most: 100) }
    }
}
