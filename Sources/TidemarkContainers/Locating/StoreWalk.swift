import Foundation
import TidemarkSQLite
import TidemarkStore

/// Searches folders for a container, level by level, and sorts the findings.
struct StoreWalk {
    private let directoryName: String
    private let depthLimit: Int
    private var remaining: Int
    private var isComplete = true
    private var found: [Finding] = []
    private var unreadable: [SkippedStore] = []

    /// An item that has the container's name.
    private struct Finding {
        /// The kind of the place; `nil` for a place that is none of the kinds.
        let kind: StoreCandidate.Kind?
        let depth: Int
        let url: URL
        /// The identity of the folder, independent of its path; `nil` for an item that is not a folder.
        let place: Place?
        let outcome: Result<ContainerDirectory, StoreError>
    }

    private struct Place: Hashable {
        let device: UInt64
        let file: UInt64
    }

    init(name: String, limits: StoreLocator.Limits) {
        directoryName = "\(name).\(StoreLocation.pathExtension)"
        depthLimit = limits.depth
        remaining = limits.entries
    }

    /// Searches a tree.
    ///
    /// - Throws: ``StoreError`` when the tree's own folder can't be read.
    mutating func search(_ tree: URL) throws(StoreError) {
        let root = try Folder(at: tree, followsLink: true)
        // The level has paths and not open folders, because it may have more folders than a process can open.
        var level = try look(into: root, at: [], below: tree)
        while !level.isEmpty {
            guard level[0].count <= depthLimit else {
                isComplete = false
                return
            }
            var next: [[String]] = []
            for path in level {
                do throws(StoreError) {
                    let folder = try Self.open(path, in: root)
                    next += try look(into: folder, at: path, below: tree)
                } catch {
                    // The folder was removed after it was listed.
                    guard error.code != .notFound else { continue }
                    unreadable.append(
                        SkippedStore(url: Self.url(of: path, below: tree), code: error.code, reason: error.message))
                }
            }
            level = next
        }
    }

    /// Examines one place.
    mutating func look(at url: URL, followsLink: Bool) {
        do throws(StoreError) {
            if followsLink {
                let folder = try Folder(at: url, followsLink: true)
                note(folder, at: url, kind: .defaultLocation, depth: 0)
            } else {
                let parent = try Folder(at: url.deletingLastPathComponent(), followsLink: true)
                guard try parent.status(of: directoryName) != nil else { return }
                consider(directoryName, in: parent, at: url, kind: .defaultLocation, depth: 0)
            }
        } catch {
            guard error.code != .notFound else { return }
            unreadable.append(SkippedStore(url: url, code: error.code, reason: error.message))
        }
    }

    /// The candidates in order, and the skipped items.
    func result() -> StoreSearch {
        var search = StoreSearch()
        search.isComplete = isComplete
        var (places, paths): (Set<Place>, Set<String>) = ([], [])
        for finding in found.sorted(by: Self.isBefore) {
            let isNew = finding.place.map { places.insert($0).inserted } ?? true
            guard paths.insert(finding.url.path).inserted, isNew else { continue }
            switch (finding.kind, finding.outcome) {
            case (let kind?, .success(let container)):
                search.candidates.append(StoreCandidate(kind: kind, container: container, reason: kind.reason))
            case (nil, _):
                let reason = "\(finding.url.path) does not lie in a folder named 'store', and is not at the default location"
                search.skipped.append(SkippedStore(url: finding.url, code: nil, reason: reason))
            case (_, .failure(let error)):
                search.skipped.append(SkippedStore(url: finding.url, code: error.code, reason: error.message))
            }
        }
        search.skipped += unreadable.filter { paths.insert($0.url.path).inserted }
        search.skipped.sort { $0.url.path < $1.url.path }
        return search
    }

    /// The order of findings: by kind, those without a kind last; then by depth, then by path.
    private static func isBefore(_ left: Finding, _ right: Finding) -> Bool {
        if left.kind != right.kind {
            guard let kind = left.kind else { return false }
            return right.kind.map { kind < $0 } ?? true
        }
        return (left.depth, left.url.path) < (right.depth, right.url.path)
    }

    /// Searches a folder for the name, and returns the paths of the folders in it.
    private mutating func look(
        into folder: borrowing Folder, at path: [String], below tree: URL
    ) throws(StoreError) -> [[String]] {
        guard remaining > 0 else {
            isComplete = false
            return []
        }
        let entries = try folder.entries(limit: remaining)
        remaining -= entries.count
        if remaining == 0 { isComplete = false }
        if entries.contains(where: { $0.name == directoryName }) {
            let url = Self.url(of: path + [directoryName], below: tree)
            consider(directoryName, in: folder, at: url, kind: Self.kind(of: tree.pathComponents + path), depth: path.count)
        }
        let suffix = ".\(StoreLocation.pathExtension)"
        return entries.filter { $0.kind == .folder && !$0.name.hasSuffix(suffix) }.map { path + [$0.name] }
    }

    /// The kind of a place in the last of these folders.
    private static func kind(of folders: [String]) -> StoreCandidate.Kind? {
        guard folders.last == "store" else { return nil }
        return folders.dropLast().last == "local" ? .local : .cloudBacked
    }

    /// Examines an item that has the name, and records the finding.
    private mutating func consider(
        _ name: String, in parent: borrowing Folder, at url: URL, kind: StoreCandidate.Kind?, depth: Int
    ) {
        do throws(StoreError) {
            switch try parent.status(of: name).map({ $0.st_mode & S_IFMT }) {
            case nil: return
            case S_IFDIR: break
            case S_IFLNK: throw StoreError(.notAStore, "\(url.path) is a symbolic link, and none is followed here")
            default: throw StoreError(.notAStore, "\(url.path) is a file, and a container is a directory")
            }
            let folder = try parent.folder(name)
            note(folder, at: url, kind: kind, depth: depth)
        } catch {
            found.append(Finding(kind: kind, depth: depth, url: url, place: nil, outcome: .failure(error)))
        }
    }

    private mutating func note(_ folder: borrowing Folder, at url: URL, kind: StoreCandidate.Kind?, depth: Int) {
        let place = folder.status.map {
            Place(device: UInt64(truncatingIfNeeded: $0.st_dev), file: UInt64(truncatingIfNeeded: $0.st_ino))
        }
        do throws(StoreError) {
            let container = try ContainerDirectory(examining: folder, at: url)
            found.append(Finding(kind: kind, depth: depth, url: url, place: place, outcome: .success(container)))
        } catch {
            found.append(Finding(kind: kind, depth: depth, url: url, place: place, outcome: .failure(error)))
        }
    }

    private static func url(of path: [String], below tree: URL) -> URL {
        path.reduce(tree) { $0.appendingPathComponent($1, isDirectory: true) }
    }

    /// Opens a folder step by step, so that no symbolic link on the path is followed.
    private static func open(_ path: [String], in root: borrowing Folder) throws(StoreError) -> Folder {
        var folder = try root.folder(path[0])
        for name in path.dropFirst() { folder = try folder.folder(name) }
        return folder
    }
}
