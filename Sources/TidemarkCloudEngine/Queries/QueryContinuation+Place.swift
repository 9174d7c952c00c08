import Foundation
import TidemarkCloud

/// Encodes a place in an answer for the client, and decodes it again.
extension IndexQuery.Place {
    private struct Coded: Codable {
        struct Value: Codable {
            var integer: Int64?
            /// The bits of the number: JSON has no infinities.
            var real: UInt64?
            var text: String?
        }

        let values: [Value]
        let name: String
    }

    /// - Throws: `CloudError` `invalidArguments` for what did not come from such a query.
    init(_ continuation: QueryContinuation, of query: CloudQuery) throws(CloudError) {
        let coded: Coded
        do {
            coded = try JSONDecoder().decode(Coded.self, from: Data(base64Encoded: continuation.rawValue) ?? Data())
        } catch {
            throw CloudError(.invalidArguments, "this cloud has not issued the continuation")
        }
        guard coded.values.count == query.sorts.count else {
            throw CloudError(.invalidArguments, "the continuation is not of this query")
        }
        name = coded.name
        values = coded.values.map { value in
            value.integer.map { .integer($0) } ?? value.real.map { .real(Double(bitPattern: $0)) } ?? value.text.map { .text($0) }
        }
    }

    var continuation: QueryContinuation {
        let coded = Coded(
            values: values.map { value in
                switch value {
                case .integer(let number): .init(integer: number)
                case .real(let number): .init(real: number.bitPattern)
                case .text(let text): .init(text: text)
                // The engine orders nothing by bytes.
                case .bytes, nil: .init()
                }
            }, name: name)
        // Texts and whole numbers can always be encoded.
        return QueryContinuation(rawValue: try! JSONEncoder().encode(coded).base64EncodedString())
    }
}
