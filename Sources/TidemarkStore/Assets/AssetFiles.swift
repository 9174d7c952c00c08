import CTideCore
package import Foundation
import TidemarkModel
package import TidemarkSQLite

/// The files of a container's `assets/`.
package struct AssetFiles {
    /// The identifiers of assets that have their right path.
    package private(set) var ids: [String] = []
    /// The paths below `assets/` of everything else, such as links and folders of other names. They belong to other programs, and
    /// are never removed.
    package private(set) var others: [String] = []

    /// - Complexity: A listing of each folder in it.
    package init(in url: URL) throws(StoreError) {
        guard let root = try Self.root(url) else { return }
        for entry in try root.entries() {
            guard entry.kind == .folder, Self.isFolderName(entry.name) else {
                others.append(entry.name)
                continue
            }
            for file in try root.folder(entry.name).entries() {
                if file.kind == .file, Self.isIdentifier(file.name), file.name.hasPrefix(entry.name) {
                    ids.append(file.name)
                } else {
                    others.append("\(entry.name)/\(file.name)")
                }
            }
        }
    }

    /// Whether there is any asset at all.
    static func isEmpty(_ url: URL) throws(StoreError) -> Bool { try AssetFiles(in: url).ids.isEmpty }

    package static func remove(_ ids: [String], in url: URL) throws(StoreError) {
        guard !ids.isEmpty, let root = try root(url) else { return }
        for (folder, ids) in Dictionary(grouping: ids, by: { String($0.prefix(2)) }) {
            let folder = try root.folder(folder)
            for id in ids { try folder.remove(id) }
        }
    }

    /// Returns whether a text has the form of an asset's identifier. No other text may become a path.
    package static func isIdentifier(_ text: String) -> Bool {
        let utf8 = Array(text.utf8).map(CChar.init(bitPattern:))
        return tide_blob_id_is_valid(utf8, utf8.count)
    }

    private static func isFolderName(_ name: String) -> Bool { Hexadecimal.isText(name, ofBytes: 1) }

    /// `nil`: there is no such folder yet.
    private static func root(_ url: URL) throws(StoreError) -> Folder? {
        do {
            return try Folder(at: url)
        } catch {
            if error.code == .notFound { return nil }
            throw error
        }
    }
}
