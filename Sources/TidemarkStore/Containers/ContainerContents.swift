package import Foundation
package import TidemarkModel
package import TidemarkSQLite

/// The names in a container's folder: the container's own files, and others.
package struct ContainerContents {
    /// The names of the container's own files and folders, without its description.
    package private(set) var own: [String] = []
    /// The names of other programs' files. They are never copied or removed.
    package private(set) var others: [String] = []

    package init(of url: URL) throws(StoreError) {
        for name in try Folder(at: url).entries().map(\.name) where name != Self.description {
            if Self.isOwn(name) { own.append(name) } else { others.append(name) }
        }
    }

    package static let description = "container.json"
    /// The ending of the name of a database that is being copied.
    package static let unfinishedCopy = ".copy"

    private static let folders = ["assets", "staging", "notifier", downloads, Quarantine.folder]
    private static let journals = [MoveJournal.file, MovedNotice.draft]
    /// The lock of the process that synchronises.
    package static let syncLock = "sync-lock"
    /// The folder of contents on their way from the cloud.
    package static let downloads = "downloads"
    /// Returns the name of a content on its way from the cloud. Each store has its own files: both may fetch one content at a time.
    package static func download(of digest: String, for scope: StoreScope) -> String {
        scope == .private ? digest : "\(digest).\(scope.name)"
    }
    /// Returns the store that a file on its way from the cloud is for.
    static func scope(ofDownload name: String) -> StoreScope {
        StoreScope.allCases.first { $0 != .private && name.hasSuffix(".\($0.name)") } ?? .private
    }
    /// The credential that a served cloud has given the container. It moves with the container, and no copy has it.
    package static let session = "cloud-session"
    /// Proves to a served cloud that an account was signed in here before. It outlasts the session, and moves with it.
    static let device = "cloud-session-device"
    private static let credentials = [session, device]
    static func isCredential(_ name: String) -> Bool { credentials.contains(name) }

    private static func isOwn(_ name: String) -> Bool {
        folders.contains(name) || journals.contains(name) || isDatabase(name) || isLock(name) || credentials.contains(name)
            || isUnfinished(name)
    }

    /// Returns whether a name is a file of the container that was unfinished when its process died.
    private static func isUnfinished(_ name: String) -> Bool {
        (journals + credentials + [description]).contains { name.hasPrefix(".\($0).") }
    }

    private static func isDatabase(_ name: String) -> Bool {
        ContainerDirectory.scopes.map { "\($0.name).sqlite" }.contains {
            name == $0 || name.hasPrefix("\($0)-") && name != "\($0)-lock" || name == $0 + unfinishedCopy
                || name.hasPrefix("\($0)\(unfinishedCopy)-")
        }
    }

    private static func isLock(_ name: String) -> Bool {
        name == syncLock || ContainerDirectory.scopes.contains { name == "\($0.name).sqlite-lock" }
    }

    /// Whether the folder has more than a moved container may leave: locks, which a late process may have made again.
    package var isMore: Bool { own.contains { !Self.isLock($0) && !Self.isUnfinished($0) } }
    /// Whether the folder has nothing that must stay.
    package var isEmpty: Bool { !isMore && others.allSatisfy { $0.hasPrefix(".") } }

    /// Removes a container's files, except its description and the journals: databases first, locks last. A missing file is no
    /// error. Other programs' files stay.
    ///
    /// - Parameter atStep: Called after each step.
    package static func remove(from url: URL, keepsLocks: Bool = false, atStep: (RemovalStep) throws -> Void = { _ in }) throws {
        let folder = try Folder(at: url)
        let own = try ContainerContents(of: url).own
        // Without its database a store does not exist. So after an interruption, the next process sees that the removal had
        // begun.
        for name in own.filter(isDatabase).sorted(by: { ($0.count, $0) < ($1.count, $1) }) { try folder.remove(name) }
        try atStep(.databases)
        let assets = url.appendingPathComponent("assets")
        try AssetFiles.remove(AssetFiles(in: assets).ids, in: assets)
        if own.contains("assets") {
            for entry in try Folder.entriesIfPresent(at: assets) { try removeIfEmpty(assets.appendingPathComponent(entry.name)) }
        }
        if own.contains(Quarantine.folder) { try Quarantine.removeAll(in: url) }
        for name in folders where own.contains(name) && name != Quarantine.folder {
            let inside = url.appendingPathComponent(name)
            if name != "assets" { try removeFiles(in: inside) }
            try removeIfEmpty(inside)
        }
        try atStep(.assets)
        for name in own where isLock(name) && !keepsLocks || credentials.contains(name) || isUnfinished(name) {
            try folder.remove(name)
        }
        try folder.synchronize()
        try atStep(.locks)
    }

    /// Copies a container's credentials for a served cloud to another place. A file that would not be trusted stays behind.
    package static func copySession(from source: URL, to target: URL) throws(StoreError) {
        for name in credentials {
            guard let status = try Folder(at: source, followsLink: true).status(of: name), status.st_mode & 0o077 == 0,
                status.st_uid == geteuid(), let data = try? DurableFile.data(of: source.appendingPathComponent(name))
            else { continue }
            try DurableFile.write(data, to: target.appendingPathComponent(name))
        }
    }

    /// Removes unfinished files of processes that were killed. A living process locks the files that it writes. A file that can't
    /// be removed stays, and does no harm.
    static func removeAbandoned(from url: URL) {
        let names = journals + credentials + [description]
        try? Folder(at: url, followsLink: true).removeTemporaryFiles { names.contains($0) || LogExamination.isCopy($0) }
    }

    /// Removes the container's files that were unfinished when their process died.
    package static func removeUnfinished(from url: URL) throws(StoreError) {
        let own = try ContainerContents(of: url).own
        for name in own where isUnfinished(name) { try Folder(at: url).remove(name) }
    }

    package enum RemovalStep { case databases, assets, locks }

    /// Removes the files of a folder. Anything else of the name, such as a symbolic link, belongs to another program and stays.
    private static func removeFiles(in url: URL) throws {
        var status = stat()
        guard lstat(url.path, &status) == 0 else {
            guard errno == ENOENT else { throw Folder.failure("examine", url.path) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return }
        let folder = try Folder(at: url)
        for entry in try folder.entries() where entry.kind != .folder { try folder.remove(entry.name) }
    }

    /// Removes a folder if it is empty.
    package static func removeIfEmpty(_ url: URL) throws(StoreError) {
        guard rmdir(url.path) != 0, ![ENOENT, ENOTEMPTY, EEXIST, ENOTDIR].contains(errno) else { return }
        throw Folder.failure("remove the folder", url.path)
    }
}
