import TidemarkCloud
import TidemarkModel

/// The owners that a write has declared, and those that it turned out to need.
///
/// Most requests know whose rows they write. A request to the public database may also change what others have stored: it deletes
/// records that they made, or releases assets that they sent. It finds these owners while it reads. Then the transaction ends
/// without having written anything, and begins again with these owners included.
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

    /// The owners with which to begin again; `nil` if none was missing.
    fileprivate var all: WrittenOwners? {
        let missing = missing.withLock { $0 }
        return missing.isEmpty ? nil : WrittenOwners(missing.union(declared.names ?? []))
    }
}

extension CloudEngine {
    /// Runs a write that may find the owners of the rows it writes only while it reads.
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
