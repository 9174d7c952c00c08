package import TidemarkCloud

/// An enum whose cases have names on the wire. A newer server may send names that this version does not know.
package protocol WireNamed: CaseIterable, Equatable {
    /// A value that this version does not know.
    static var unknown: Self { get }
    /// The value's name.
    var wireName: String { get }
}

extension WireNamed {
    /// Reads the value of a request.
    ///
    /// - Throws: `CloudError` `invalidArguments` for an unknown name.
    package init(wire node: JSONNode) throws(CloudError) {
        let name = try node.asString()
        guard let value = Self.allCases.first(where: { $0.wireName == name }) else {
            let names = Self.allCases.filter { $0 != .unknown }.map(\.wireName)
            throw node.refusal("is not one of \(names.joined(separator: ", "))")
        }
        self = value
    }

    /// Reads the value of an answer; `unknown` for a name that this version does not know.
    init(answered node: JSONNode) throws(CloudError) {
        let name = try node.asString()
        self = Self.allCases.first { $0.wireName == name } ?? .unknown
    }
}
