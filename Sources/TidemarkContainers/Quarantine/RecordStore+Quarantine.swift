import Foundation
package import TidemarkSQLite
package import TidemarkStore

extension RecordStore {
    /// Sets all records aside, and what was refused, whole and durable, and empties the store.
    ///
    /// - Returns: `nil` when there was nothing.
    @discardableResult
    package func setAside(reason: String) throws(StoreError) -> Quarantine? {
        try setAside(reason: reason, copy: copy)
    }

    /// Empties the store; where it has changes that no cloud has, it is set aside before, whole and durable, in the same transaction.
    ///
    /// - Parameter change: What is remembered of the cloud from then on.
    /// - Returns: How many changes were not sent, and where they are.
    package func setAsideUnsent(
        reason: String, then change: (inout SyncState) -> Void
    ) throws(StoreError) -> (quarantine: Quarantine?, pending: Int) {
        try setAsideUnsent(reason: reason, copy: copy, then: change)
    }

    /// Makes the container of what is set aside. While the lock is held, what is committed stays as it is.
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
        // A process that was killed may have made the folder of all that is set aside, and not made its name durable.
        try Folder(at: container.url).synchronize()
    }
}
