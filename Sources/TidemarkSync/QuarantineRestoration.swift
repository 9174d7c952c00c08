/// Options for bringing back records that were set aside. Without any option, the edits that no cloud has go back to their own account, and
/// the quarantine is discarded.
public struct QuarantineRestoration: OptionSet, Sendable {
    /// The bits of the options.
    public let rawValue: Int
    /// Makes options of their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Also brings back records that the cloud had and that are missing here.
    public static let withRecordsOfTheCloud = QuarantineRestoration(rawValue: 1)
    /// Also restores while another account is signed in, or none. Then the quarantine stays unless all of it is brought back, because no
    /// other cloud has its records.
    public static let intoAnotherAccount = QuarantineRestoration(rawValue: 2)
    /// Keeps the quarantine.
    public static let keepingQuarantine = QuarantineRestoration(rawValue: 4)
}
