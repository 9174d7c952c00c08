import TidemarkCloud
import TidemarkModel

/// The owners that a write has declared, and those that it was found to need while it ran.
///
/// Most requests know whose rows they write. In the public database a request may also take from what others have stored: it deletes records that
/// they have made, or lets go of assets that they have sent. Whose these are is known when they are read. Then the transaction ends without having
/// written anything, and begins again with these owners, too.
final class FoundOwners: Sendable {
    private let declared: WrittenOwners
    private let missing = LockedValue<Set<String>>([])

    init(_ declared: WrittenOwners) { self.declared = declared }

    /// Makes sure that the rows of an owner may be written.
    ///
    /// - Throws: An error that ends the transaction, which begins again.
    func demand(_ owner: String) throws(CloudError) {
        guard !declared.contains(owner) else { return }
        _ = missing.withLock { $0.insert(owner) }
        throw CloudError(.internalError, "a transaction has to begin again with another owner's rows")
    }

    /// The owners with which to begin again; `nil` where none is missing.
    fileprivate var all: WrittenOwners? {
        let missing = missing.withLock { $0 }
        return missing.isEmpty ? nil : WrittenOwners(missing.union(declared.names ?? []))
    }
}

extension CloudEngine {
    /// Runs a write that may find out only as it reads whose rows it writes.
    func write<Answer: Sendable>(
        owners: WrittenOwners, expecting reads: ExpectedReads? = nil,
        finding body: @escaping @Sendable (any CloudTransaction, FoundOwners) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        var owners = owners
        while true {
            let found = FoundOwners(owners)
            do throws(CloudError) {
                return try await storage.write(owners: owners, expecting: reads) { rows throws(CloudError) in
                    try body(rows, found)
                }
            } catch {
                guard let all = found.all else { throw error }
                owners = all
            }
        }
    }
}
