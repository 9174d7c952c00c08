import Foundation
package import TidemarkSQLite
package import TidemarkStore

extension RecordStore {
    /// Copies all records and refused saves into a quarantine, durably, and empties the store.
    ///
    /// - Returns: The quarantine; `nil` when the store was empty.
    @discardableResult
    package func setAside(reason: String) throws(StoreError) -> Quarantine? {
        try setAside(reason: reason, copy: copy)
    }

    /// Empties the store. If it has changes that no cloud has, it is copied into a quarantine before, durably, in the same
    /// transaction.
    ///
    /// - Parameters:
    ///   - reason: The reason that the quarantine records.
    ///   - change: Changes the state of the synchronisation.
    /// - Returns: The number of changes that were not sent, and the quarantine that has them.
    package func setAsideUnsent(
        reason: String, then change: (inout SyncState) -> Void
    ) throws(StoreError) -> (quarantine: Quarantine?, pending: Int) {
        try setAsideUnsent(reason: reason, copy: copy, then: change)
    }

    /// Makes the container of a quarantine. The caller holds the lock, so the committed state does not change.
    private func copy(_ quarantine: Quarantine) throws {
        let place = try quarantine.makePlace(below: container.url)
        let copy = try ContainerCopy(of: container, mayLink: true, withSetAside: false)
        let target = place.appendingPathComponent(Quarantine.records, isDirectory: true)
        let folder = try UnfinishedFolder(for: target)
        try folder.fill { folder in
            try copy.run(to: folder, hook: { _ in }, progress: nil)
            try copy.verify(folder, progress: nil)
            var description = container.description
            description.copy = UUID()
            try DurableFile.write(description, to: folder.appendingPathComponent(ContainerContents.description))
        }
        try folder.commit()
        try DurableFile.write(quarantine, to: place.appendingPathComponent(Quarantine.description))
        // A process that was killed may have made the folder of the quarantines without making its name durable.
        try Folder(at: container.url).synchronize()
    }
}
