public import TidemarkCloud

/// The rows of an owner that a saving request reads before it writes: the zone, records by their names, what is being removed, the
/// schema, what the account has used, and an answer that was given before.
public struct ExpectedReads: Sendable {
    /// The zone, which is the user's own.
    public let place: StoredZone.Place
    /// The names of records, in the order in which they are asked for.
    public let names: [String]
    /// The user record name of the account that sends the request.
    public let user: String
    /// The request's client token.
    public let token: String?

    /// Makes a description of what will be read.
    public init(place: StoredZone.Place, names: [String], user: String, token: String?) {
        (self.place, self.names, self.user, self.token) = (place, names, user, token)
    }
}

extension CloudStorage {
    /// Runs the body, and expects nothing.
    public func write<Answer: Sendable>(
        owners: WrittenOwners, expecting reads: ExpectedReads?,
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer { try await write(owners: owners, body) }

    /// Returns a claim of all owners.
    public func claimSweep(every period: Duration) async throws(CloudError) -> SweepClaim? { SweepClaim() }
    /// Returns the claim.
    public func renewSweep(_ claim: SweepClaim) async throws(CloudError) -> SweepClaim? { claim }
    /// Does nothing.
    public func endSweep(_ claim: SweepClaim) async throws(CloudError) {}

    /// Does nothing: the storage has no log of its own.
    public func emptyLog() async {}

    /// Returns `nil`.
    public func readTogether<Answer>(
        _ names: [String], in place: StoredZone.Place, _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer? { nil }
}
