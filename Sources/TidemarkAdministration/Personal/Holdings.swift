package import TidemarkEmbeddedCloud

extension EmbeddedCloud.Holdings {
    /// Says what goes with the account, for questions before it is removed:
    /// `Its private databases have 34 records and 1 share. 2 participants lose access to what it shares, and their copies of it.`
    ///
    /// - Parameters:
    ///   - whose: `Its` or `Your`.
    ///   - whatIsShared: `it shares` or `you share`.
    package func sentence(_ whose: String, _ whatIsShared: String) -> String {
        let text = "\(whose) private databases have \(counted(records, "record")) and \(counted(shares, "share"))."
        guard participants > 0 else { return text }
        let verb = participants == 1 ? "loses" : "lose"
        return "\(text) \(counted(participants, "participant")) \(verb) access to what \(whatIsShared), and their copies of it."
    }
}
