package import TidemarkCloud

/// What one side of a connection says to the other beside what the protocol has, and how it spells numbers.
package struct WireDialect: Sendable {
    /// Whether it has members that only our programs know, by the name `tidemark`.
    package var isExtended: Bool
    /// Whether numbers are written as strings, for clients whose numbers are less precise.
    package var numbersAsStrings: Bool
    /// Where the content of an asset can be fetched that a field of a record names; a server says it.
    package var downloadURL: (@Sendable (_ asset: CloudAsset, _ record: CloudRecord, _ field: String) -> String)?
    /// Is called with an error that is written and of whose reason clients are told less; a server logs it.
    package var onInternalReason: (@Sendable (CloudError) -> Void)?

    package init(isExtended: Bool, numbersAsStrings: Bool = false) {
        self.isExtended = isExtended
        self.numbersAsStrings = numbersAsStrings
    }

    /// The header of a request whose sender knows our members.
    package static let header = "X-Tidemark-Extensions"
}
