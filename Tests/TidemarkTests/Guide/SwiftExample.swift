import Foundation

/// A block of Swift in a document.
struct SwiftExample: Hashable, CustomStringConvertible {
    let place: String
    /// The parts between blank lines: their lines without indentation, with single spaces.
    let paragraphs: [[String]]

    var first: String { paragraphs.first?.first ?? "" }
    var description: String { "\(place): \(first)" }

    private init?(_ lines: [String], place: String) {
        self.place = place
        paragraphs = lines.split { $0.isEmpty }.map(Array.init)
        if paragraphs.isEmpty { return nil }
    }

    /// The examples of a Markdown document, or of the doc comments of a source.
    static func all(in file: URL) throws -> [SwiftExample] {
        var lines = try lines(of: file)
        if file.pathExtension == "swift" {
            lines = lines.filter { $0.hasPrefix("///") }.map { String($0.dropFirst(3)).trimmingCharacters(in: .whitespaces) }
        }
        var examples: [SwiftExample] = []
        var open: [String]?
        for line in lines {
            if line == "```swift" {
                open = []
            } else if line == "```", let block = open {
                if let example = SwiftExample(block, place: file.lastPathComponent) { examples.append(example) }
                open = nil
            } else {
                open?.append(line)
            }
        }
        return examples
    }

    static func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.split(separator: " ").joined(separator: " ")
        }
    }

    /// Whether a source contains all paragraphs in order; there may be others between them.
    func isFound(in source: [String]) -> Bool {
        var rest = source[...]
        for paragraph in paragraphs {
            guard let place = rest.indices.first(where: { rest[$0...].starts(with: paragraph) }) else { return false }
            rest = rest[(place + paragraph.count)...]
        }
        return true
    }
}
