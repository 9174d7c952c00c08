import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: fields are decoded as they were encoded, and damaged bytes are an error and do not crash. Method: random fields; every
/// prefix of them, and random changes.
@Suite(.timeLimit(.minutes(30))) struct FieldCodingTests {
    private func scalar(_ type: FieldType.Scalar, _ random: inout Randomness) -> CloudValue {
        func number() -> Int64 {
            Int64(bitPattern: UInt64.random(in: .min ... .max, using: &random)) >> Int64.random(in: 0...63, using: &random)
        }
        func text() -> String {
            String((0..<Int.random(in: 0...20, using: &random)).map { _ in "aä🏔 \u{0}".randomElement(using: &random)! })
        }
        switch type {
        case .string: return .string(text())
        case .int64: return .int64(number())
        case .timestamp: return .timestamp(number())
        case .double: return .double(Double.random(in: -1e9...1e9, using: &random))
        case .bytes:
            return .bytes(
                Data((0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }))
        case .location:
            var place = Location(
                latitude: .random(in: -90...90, using: &random), longitude: .random(in: -180...180, using: &random))
            if Bool.random(using: &random) { place.altitude = 1 }
            if Bool.random(using: &random) { place.verticalAccuracy = 2 }
            if Bool.random(using: &random) { place.speed = 3 }
            return .location(place)
        case .reference:
            let actions: [CloudReference.Action] = [.none, .deleteSelf, .validate]
            return .reference(CloudReference(text(), action: actions.randomElement(using: &random)!))
        case .asset: return .asset(CloudAsset(digest: String(repeating: "a", count: 64), size: abs(number() >> 1)))
        }
    }

    private func fields(_ random: inout Randomness) -> [String: CloudValue] {
        var fields: [String: CloudValue] = [:]
        for number in 0..<Int.random(in: 0...12, using: &random) {
            let type = FieldType.Scalar.allCases.randomElement(using: &random)!
            fields["field\(number)"] =
                Bool.random(using: &random)
                ? scalar(type, &random)
                : .list((0..<Int.random(in: 0...4, using: &random)).map { _ in scalar(type, &random) }, of: type)
        }
        return fields
    }

    @Test func `fields are decoded as they were encoded`() throws {
        var random = Randomness("fields come back as they were")
        for _ in 0..<500 {
            let fields = fields(&random)
            let data = FieldCoding.encode(fields)
            #expect(try FieldCoding.decode(data) == fields)
            #expect(try FieldCoding.decode(data, only: ["field0"]) == fields.filter { $0.key == "field0" })
        }
    }

    @Test func `damaged bytes are an error`() throws {
        var random = Randomness("damaged bytes are an error")
        for _ in 0..<60 {
            let data = FieldCoding.encode(fields(&random))
            for length in 0..<data.count {
                #expect(throws: CloudError(.internalError, "")) { try FieldCoding.decode(data.prefix(length)) }
            }
            guard !data.isEmpty else { continue }
            for _ in 0..<50 {
                var changed = data
                changed[Int.random(in: 0..<data.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                // Decoding may succeed or fail, but only with this error.
                do { _ = try FieldCoding.decode(changed) } catch { #expect(error.code == .internalError) }
            }
        }
    }
}
