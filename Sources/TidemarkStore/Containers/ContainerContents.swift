package import Foundation
package import TidemarkModel
package import TidemarkSQLite

/// What lies in a container's folder: what is the container's own, and what is not.
package struct ContainerContents {
    /// Names of the container's own files and folders, its description apart.
    package private(set) var own: [String] = []
    /// Names of what others have put there. None of it is ours to copy or to remove.
    package private(set) var others: [String] = []

    package init(of url: URL) throws(StoreError) {
        for name in try Folder(at: url).entries().map(\.name) where name != Self.description {
            if Self.isOwn(name) { own.append(name) } else { others.append(name) }
        }
    }

    package static let description = "container.json"
    /// What the name of a database that is being copied ends with.
    package static let unfinishedCopy = ".copy"

    private static let folders = ["assets", "staging", "notifier", downloads, Quarantine.folder]
    private static let journals = [MoveJournal.file, MovedNotice.draft]
    /// Held by the process that synchronises.
    package static let syncLock = "sync-lock"
    /// Assets on their way from the cloud.
    package static let downloads = "downloads"
    /// Returns the name of a content on its way from the cloud. Each store has its own files: both may fetch one content at a time.
    package static func download(of digest: String, for scope: StoreScope) -> String {
        scope == .private ? digest : "\(digest).\(scope.name)"
    }
    /// Returns the store that a file on its way from the cloud is for.
    static func scope(ofDownload name: String) -> StoreScope {
        StoreScope.allCases.first { $0 != .private && name.hasSuffix(".\($0.name)") } ?? .private
    }
    /// What a served cloud knows the container by. It moves with the container, and is in no copy of it.
    package static let session = "cloud-session"
    /// What shows to a served cloud that an account was signed in to here before. It outlasts the session, and goes where that goes.
    static let device = "cloud-session-device"
    private static let credentials = [session, device]
    static func isCredential(_ name: String) -> Bool { credentials.contains(name) }

    private static func isOwn(_ name: String) -> Bool {
        folders.contains(name) || journals.contains(name) || isDatabase(name) || isLock(name) || credentials.contains(name)
            || isUnfinished(name)
    }

    /// Whether it is a file of ours that was being written when its process died.
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

    /// Whether there is more than what a container may leave that has moved: locks, which a late comer has made again.
    package var isMore: Bool { own.contains { !Self.isLock($0) && !Self.isUnfinished($0) } }
    /// Whether there is nothing that has to stay.
    package var isEmpty: Bool { !isMore && others.allSatisfy { $0.hasPrefix(".") } }

    /// Removes a container's files but for its description and the journals: databases first, locks last. That something is gone
    /// already is no error; what is not the container's own stays.
    ///
    /// - Parameter atStep: Called with what is gone.
    package static func remove(from url: URL, keepsLocks: Bool = false, atStep: (RemovalStep) throws -> Void = { _ in }) throws {
        let folder = try Folder(at: url)
        let own = try ContainerContents(of: url).own
        // Without its database a store is none: whoever comes after an interruption can tell that its end had begun.
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

    /// Takes along to another place what a served cloud knows the container by. What would not be trusted stays behind.
    package static func copySession(from source: URL, to target: URL) throws(StoreError) {
        for name in credentials {
            guard let status = try Folder(at: source, followsLink: true).status(of: name), status.st_mode & 0o077 == 0,
                status.st_uid == geteuid(), let data = try? DurableFile.data(of: source.appendingPathComponent(name))
            else { continue }
            try DurableFile.write(data, to: target.appendingPathComponent(name))
        }
    }

    /// Removes files of ours that processes were writing when they were killed, and no others: what a process that lives writes is locked.
    /// What can't be removed stays, since it harms nobody.
    static func removeAbandoned(from url: URL) {
        let names = journals + credentials + [description]
        try? Folder(at: url, followsLink: true).removeTemporaryFiles { names.contains($0) || LogExamination.isCopy($0) }
    }

    /// Removes files of ours that were being written when their process died.
    package static func removeUnfinished(from url: URL) throws(StoreError) {
        let own = try ContainerContents(of: url).own
        for name in own where isUnfinished(name) { try Folder(at: url).remove(name) }
    }

    package enum RemovalStep { case databases, assets, locks }

    /// Removes the files of a folder. What is no folder, such as a symbolic link, others have put there, and it stays.
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

    /// Removes a folder unless there is something in it.
    package static func removeIfEmpty(_ url: URL) throws(StoreError) {
        guard rmdir(url.path) != 0, ![ENOENT, ENOTEMPTY, EEXIST, ENOTDIR].contains(errno) else { return }
        throw Folder.failure("remove the folder", url.path)
    }
}
