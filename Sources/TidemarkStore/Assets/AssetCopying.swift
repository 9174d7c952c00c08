import CTideCore
package import Foundation
package import TidemarkSQLite

/// Copies assets from one container's folder to another's, on several threads.
package final class AssetCopying: Sendable {
    /// Copying waits for the disk more than it works.
    private static let workers = 4

    private let from: URL
    private let to: URL
    private let mayLink: Bool

    /// - Parameters:
    ///   - to: The target folder, made with the first asset.
    ///   - mayLink: Whether an asset may be linked instead of copied on the same file system.
    package init(from: URL, to: URL, mayLink: Bool) { (self.from, self.to, self.mayLink) = (from, to, mayLink) }

    /// Copies each asset that the target lacks. The copies are durable only after `synchronize`.
    ///
    /// - Parameter progress: Called with each asset, from several threads.
    /// - Throws: ``StoreError`` `corrupt` when one is missing or damaged; `diskFull`, `io`; and what `progress` throws.
    package func copy(_ ids: [String], progress: @escaping (String) throws -> Void) throws {
        let to = to
        try run(ids, progress: progress) { copier, id, error in
            guard AssetIdentifier.isOfDigest(id) else { return tide_copier_copy(copier, id, error) }
            // The core has no SHA-256. A copy from an interrupted attempt may be damaged.
            if case .damaged = AssetFiles.examine(id, in: to) { unlink(AssetFiles.url(of: id, in: to).path) }
            let status = tide_copier_copy(copier, id, error)
            return status == TIDE_OK ? Self.compare(id, in: to, removesDamaged: true, error) : status
        }
    }

    /// Compares a copy with its identifier, which is made of a SHA-256.
    private static func compare(
        _ id: String, in folder: URL, removesDamaged: Bool, _ error: UnsafeMutablePointer<tide_error>
    ) -> tide_status {
        switch AssetFiles.examine(id, in: folder) {
        case .whole: return TIDE_OK
        case .missing(let reason), .damaged(let reason):
            if removesDamaged { unlink(AssetFiles.url(of: id, in: folder).path) }
            error.pointee.status = TIDE_REJECTED
            withUnsafeMutableBytes(of: &error.pointee.message) { message in
                message.copyBytes(from: reason.utf8.prefix(message.count - 1))
            }
            return TIDE_REJECTED
        }
    }

    /// Reads each copy again.
    package func verify(_ ids: [String], progress: @escaping (String) throws -> Void) throws {
        let to = to
        try run(ids, progress: progress) { copier, id, error in
            let status = tide_copier_verify(copier, id, error)
            guard status == TIDE_OK, AssetIdentifier.isOfDigest(id) else { return status }
            return Self.compare(id, in: to, removesDamaged: false, error)
        }
    }

    package func synchronize() throws(StoreError) {
        let copier = try Copier(from: from, to: to, mayLink: mayLink)
        try checked { tide_copier_sync(copier.pointer, &$0) }
    }

    private typealias Work = (OpaquePointer, String, UnsafeMutablePointer<tide_error>) -> tide_status

    private func run(_ ids: [String], progress: @escaping (String) throws -> Void, _ work: @escaping Work) throws {
        guard !ids.isEmpty else { return }
        let copiers = try (0..<min(Self.workers, ids.count)).map { _ in try Copier(from: from, to: to, mayLink: mayLink) }
        let round = Round(ids: ids, copiers: copiers, work: work, progress: progress)
        var error = tide_error()
        let status = withExtendedLifetime(round) {
            tide_intake_run(
                UInt32(copiers.count), UInt32(ids.count),
                { context, worker, index, error in
                    Unmanaged<Round>.fromOpaque(context!).takeUnretainedValue().run(
                        worker: Int(worker), index: Int(index), error: error)
                }, Unmanaged.passUnretained(round).toOpaque(), &error)
        }
        if let failure = round.failure { throw failure }
        guard status != TIDE_OK else { return }
        throw status == TIDE_REJECTED ? StoreError(.corrupt, error.text) : StoreError(error)
    }

    private final class Copier {
        let pointer: OpaquePointer

        init(from: URL, to: URL, mayLink: Bool) throws(StoreError) {
            var created: OpaquePointer?
            try checked { tide_copier_create(from.path, to.path, mayLink, &created, &$0) }
            pointer = created!
        }

        deinit { tide_copier_destroy(pointer) }
    }

    /// The state that the threads of one run share.
    private final class Round {
        private let ids: [String]
        private let copiers: [Copier]
        private let work: Work
        private let progress: (String) throws -> Void
        private let lock = NSLock()
        private(set) var failure: (any Error)?

        init(ids: [String], copiers: [Copier], work: @escaping Work, progress: @escaping (String) throws -> Void) {
            (self.ids, self.copiers, self.work, self.progress) = (ids, copiers, work, progress)
        }

        func run(worker: Int, index: Int, error: UnsafeMutablePointer<tide_error>) -> tide_status {
            let status = work(copiers[worker].pointer, ids[index], error)
            guard status == TIDE_OK else { return status }
            do {
                try progress(ids[index])
                return TIDE_OK
            } catch let thrown {
                lock.withLock { failure = thrown }
                error.pointee.status = TIDE_MISUSE
                return TIDE_MISUSE
            }
        }
    }
}
