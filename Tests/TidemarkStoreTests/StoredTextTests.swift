import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkStore

/// Goal: lists and locations are read from their text as they were written, and other text is refused. Method: texts and values
/// alone, also random ones, whose seed is printed.
@Suite(.timeLimit(.minutes(30))) struct StoredTextTests {
    @Test(arguments: [
        FieldValue.list([], of: .string),
        .list([.string(""), .string("fjord"), .string("a,b]c}d\"e\\f/g\n\u{1}é🏔")], of: .string),
        .list([.string("[\"nested\"]")], of: .string), .list([.reference("senja"), .reference("tromsø")], of: .reference),
        .list([.asset("ab-12-png")], of: .asset), .list([.int64(.min), .int64(-1), .int64(0), .int64(.max)], of: .int64),
        .list([.timestamp(1_700_000_000_123_456)], of: .timestamp),
        .list([.double(0), .double(-0.1), .double(1e300), .double(.leastNonzeroMagnitude), .double(1e22)], of: .double),
    ])
    func `a list is read as it was written`(_ list: FieldValue) throws {
        let text = try #require(StoredText.text(list))
        guard case .list(let elements, let scalar) = list else { return }
        #expect(StoredText.elements(of: text, scalar) == elements, "\(text)")
    }

    @Test func `a location is read as it was written, with its known parts`() {
        var place = Location(latitude: 69.3, longitude: -17.125)
        #expect(StoredText.place(StoredText.location(place)) == place)
        (place.altitude, place.horizontalAccuracy, place.verticalAccuracy) = (1e-7, 5, 0.1)
        (place.course, place.speed) = (359.99999999, 33.3)
        #expect(StoredText.place(StoredText.location(place)) == place)
    }

    @Test func `text in another spelling of JSON gives the same value`() {
        #expect(StoredText.elements(of: " [ 1 , 2 ] ", .int64) == [.int64(1), .int64(2)])
        #expect(StoredText.elements(of: #"["a\u0041", "b"]"#, .string) == [.string("aA"), .string("b")])
        #expect(
            StoredText.place(#"{ "longitude": 2, "latitude": 1 }"#) == Location(latitude: 1, longitude: 2))
    }

    @Test(arguments: [
        "", "[", "]", "[1", "[,1]", "[1 2]", "[1]]", "[\"a]", "[\"a\"", "[null]", "[[1]]", "{}", "1", "[1]x", "[--1]",
        "[1e]",
    ])
    func `invalid text of a list is refused`(_ text: String) {
        #expect(StoredText.elements(of: text, .int64) == nil)
        #expect(StoredText.elements(of: text, .double) == nil)
        #expect(StoredText.elements(of: text, .string) == nil)
    }

    @Test(arguments: [
        "", "{", "{}", "[]", #"{"latitude":1}"#, #"{"latitude":"1","longitude":2}"#, #"{"latitude":1,"longitude":2"#,
    ])
    func `invalid text of a location is refused`(_ text: String) { #expect(StoredText.place(text) == nil) }

    @Test func `random lists are read as they were written`() throws {
        var random = Randomness("random lists in text")
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...6, using: &random)
            let scalar = [FieldType.Scalar.string, .int64, .double].randomElement(using: &random)!
            let elements = (0..<count).map { _ -> FieldValue in
                switch scalar {
                case .int64: return .int64(.random(in: .min ... .max, using: &random))
                case .double:
                    let number = Double(bitPattern: .random(in: .min ... .max, using: &random))
                    return .double(number.isFinite && number != 0 ? number : 1)
                default:
                    let scalars = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                        Character(Unicode.Scalar(UInt32.random(in: 1...0x2fff, using: &random)) ?? "x")
                    }
                    return .string(String(scalars))
                }
            }
            let text = StoredText.list(elements)
            #expect(StoredText.elements(of: text, scalar) == elements, "\(text)")
        }
    }
}
