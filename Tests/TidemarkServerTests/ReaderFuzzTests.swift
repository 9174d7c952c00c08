import Foundation
import ReaderFuzz
import TestSupport
import Testing

/// Goal: no input crashes a reader, and a value that a reader accepts is read again unchanged. Method: the fuzzers' corpora, then
/// inputs that a seeded mutator makes of them. A crash ends the process: the seed makes the same inputs again. `make
/// prove-fuzz-swift` goes on with libFuzzer.
@Suite(.serialized) struct ReaderFuzzTests {
    /// The number of mutated inputs for each reader; a request takes a millisecond.
    private static func count(_ reader: FuzzedReader) -> Int { reader == .request ? 400 : 4_000 }

    private static func corpus(_ reader: FuzzedReader) throws -> [[UInt8]] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../ReaderFuzz/corpus/\(reader.rawValue)")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try files.sorted { $0.path < $1.path }.map { Array(try Data(contentsOf: $0)) }
    }

    @Test(.timeLimit(.minutes(30)), arguments: FuzzedReader.allCases)
    func `a reader survives the inputs of its corpus, and mutated ones`(reader: FuzzedReader) throws {
        let corpus = try Self.corpus(reader)
        try #require(!corpus.isEmpty)
        for input in corpus { reader.read(input) }
        var random = Randomness("reader \(reader.rawValue)")
        for _ in 0..<Self.count(reader) {
            reader.read(Self.mutated(corpus.randomElement(using: &random)!, corpus.randomElement(using: &random)!, &random))
        }
    }

    /// Bytes that have a meaning for readers.
    private static let words = [
        "null", "-1", "0", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e308", "1e-400", "0.5",
        "true", "[]", "{}", "\"\"",
        "\\u0000", "\\ud800", "\u{0}", "\u{feff}", "ü", "%00", "%zz", "..", "/", "&#x110000;",
    ].map { Array($0.utf8) }

    private static func mutated(_ input: [UInt8], _ other: [UInt8], _ random: inout Randomness) -> [UInt8] {
        var bytes = input
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, place + Int.random(in: 0...12, using: &random))
            switch Int.random(in: 0..<7, using: &random) {
            case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1 where place < bytes.count: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 2: bytes.removeSubrange(place..<end)
            case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
            case 4: bytes.replaceSubrange(place..<end, with: words.randomElement(using: &random)!)
            case 5: bytes = Array(bytes[..<place]) + other.suffix(Int.random(in: 0...other.count, using: &random))
            default: number(in: &bytes, from: place, &random)
            }
        }
        return bytes
    }

    /// Replaces the next number by another one.
    private static func number(in bytes: inout [UInt8], from place: Int, _ random: inout Randomness) {
        let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
        guard let start = bytes[place...].firstIndex(where: isDigit) else { return }
        let end = bytes[start...].firstIndex { !isDigit($0) } ?? bytes.count
        bytes.replaceSubrange(start..<end, with: words[Int.random(in: 1..<9, using: &random)])
    }
}
