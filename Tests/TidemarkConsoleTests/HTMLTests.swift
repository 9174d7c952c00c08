import Foundation
import Testing

@testable import TidemarkConsole

/// Goal: no text from outside becomes HTML. Method: harmful texts as content, as attributes and as addresses.
@Suite(.timeLimit(.minutes(30))) struct HTMLTests {
    @Test func `interpolated text is escaped, also in an attribute`() {
        let text = "<script>alert('x')</script>\"&"
        let piece: HTML = "<p title=\"\(text)\">\(text)</p>"
        let escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;"
        #expect(piece.text == "<p title=\"\(escaped)\">\(escaped)</p>")
        #expect(HTML(text).text == escaped)
    }

    @Test func `pieces of HTML are inserted as they are`() {
        let bold: HTML = "<b>\("<")</b>"
        let both: HTML = "\(bold)\([bold, bold])\(7)"
        #expect(both.text == "<b>&lt;</b><b>&lt;</b><b>&lt;</b>7")
        #expect(["a", "<"].html { "<li>\($0)</li>" }.text == "<li>a</li><li>&lt;</li>")
        #expect(HTML.when(false, bold).text == "")
    }

    @Test func `control characters, and those that reverse the direction of text, are removed`() {
        // Not a literal, which would be HTML as it is.
        let text = "a\u{0}b\u{1b}c\u{202e}d\u{2066}e\tf\ng\u{85}h"
        #expect(HTML(text).text == "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\tf\ng\u{fffd}h")
    }

    @Test func `a time is shown to the second, and its title orders two times within one second`() {
        #expect(
            Layout.time(1_800_000_007_000_250).text
                == "<time datetime=\"2027-01-15T08:00:07.000250Z\" title=\"2027-01-15T08:00:07.000250Z\">2027-01-15 08:00:07</time>"
        )
        #expect(Layout.moment(1_800_000_007_000_000) == "2027-01-15 08:00:07")
    }

    @Test func `attributes are quoted on every page`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/TidemarkConsole")
        var lines = 0
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        for case let file as URL in files where file.pathExtension == "swift" {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") where line.contains("<") {
                lines += 1
                #expect(line.firstMatch(of: /[A-Za-z-]=\\\(/) == nil, "\(file.lastPathComponent): \(line)")
                // The only script is a module with an address of its own.
                let rest = line.replacing(#"<script type=\"module\" src=\"\(Address([LiveModule.name]))\"></script>"#, with: "")
                #expect(rest.firstMatch(of: /<script|<style| style=| on[a-z]+=/) == nil, "\(file.lastPathComponent): \(line)")
            }
        }
        #expect(lines > 200)
    }

    @Test func `an address is percent-encoded, and leads to no other server`() {
        #expect(
            Address(["a/b", "..", "ä", "x.y"], query: [("q", "a&b=c"), ("n", nil), ("e", "")]).text
                == "/console/a%2Fb/%2E%2E/%C3%A4/x.y?q=a%26b%3Dc&e=")
        #expect(Address(["javascript:alert(1)"]).with("to", "//evil").text == "/console/javascript%3Aalert%281%29?to=%2F%2Fevil")
        let link: HTML = "<a href=\"\(Address(["\"><script>"]))\">"
        #expect(link.text == "<a href=\"/console/%22%3E%3Cscript%3E\">")
    }
}
