/// What is brought back of records that were set aside, and where. Without any: edits that no cloud had, to the account that they belong to;
/// then nothing is set aside any more.
public struct QuarantineRestoration: OptionSet, Sendable {
    /// The bits of the options.
    public let rawValue: Int
    /// Makes options of their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Also records that the cloud had, where they are not there.
    public static let withRecordsOfTheCloud = QuarantineRestoration(rawValue: 1)
    /// Also where another account is signed in, or none. What was set aside stays then, unless all of it is brought back: nobody else's
    /// cloud has it.
    public static let intoAnotherAccount = QuarantineRestoration(rawValue: 2)
    /// What was set aside stays there.
    public static let keepingQuarantine = QuarantineRestoration(rawValue: 4)
}
