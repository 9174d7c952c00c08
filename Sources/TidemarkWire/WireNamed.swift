package import TidemarkCloud

/// A value with a name on the wire, of which a newer server may know more than this version.
package protocol WireNamed: CaseIterable, Equatable {
    /// A value that this version does not know.
    static var unknown: Self { get }
    /// The value's name.
    var wireName: String { get }
}

extension WireNamed {
    /// The value of a request.
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

    /// The value of an answer: `unknown` where this version does not know it.
    init(answered node: JSONNode) throws(CloudError) {
        let name = try node.asString()
        self = Self.allCases.first { $0.wireName == name } ?? .unknown
    }
}
