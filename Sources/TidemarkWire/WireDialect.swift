package import TidemarkCloud

/// The variant of the protocol in which messages are written.
package struct WireDialect: Sendable {
    /// Whether messages have the members `tidemark`, which the protocol lacks and only Tidemark's programs read.
    package var isExtended: Bool
    /// Whether numbers are written as strings, for clients whose numbers are less precise.
    package var numbersAsStrings: Bool
    /// Returns the address from which the content of an asset in a field can be downloaded. Only servers set it.
    package var downloadURL: (@Sendable (_ asset: CloudAsset, _ record: CloudRecord, _ field: String) -> String)?
    /// Called with an error that is written without its internal reason. A server logs it.
    package var onInternalReason: (@Sendable (CloudError) -> Void)?

    package init(isExtended: Bool, numbersAsStrings: Bool = false) {
        self.isExtended = isExtended
        self.numbersAsStrings = numbersAsStrings
    }

    /// The header of requests from clients that read the members `tidemark`.
    package static let header = "X-Tidemark-Extensions"
}
