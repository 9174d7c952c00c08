public import Foundation
public import TidemarkSQLite
import TidemarkStore

/// Finds a container by its name, as a widget or an extension must that does not know where the app keeps it.
///
/// Under a directory tree, `…/store/NAME.tidemark` is taken first, `…/local/store/NAME.tidemark` second, and the default location
/// last; of equals, the one that lies least deep, then the first by path. Nothing is opened for writing, no lock is taken and no byte
/// changes.
///
/// ```swift
/// let locator = try StoreLocator(name: "Journal", location: .group("group.com.example.journal"))
/// guard let journal = try locator.search().best else { return }
/// let reader = try StoreReader(container: journal.container)
/// ```
public struct StoreLocator: Sendable {
    /// Folders that lie deeper than this below the tree's are not looked into.
    public static let depthLimit = 12
    /// No more names than this are read in a search; those that lie least deep come first.
    public static let entryLimit = 200_000

    /// The container's name, without `.tidemark`.
    public let name: String
    /// The tree that is searched; `nil` for none.
    public let tree: URL?
    /// The default location, the last that is taken.
    public let location: StoreLocation
    private let environment: [String: String]
    private let isTreeGiven: Bool
    private let limits: Limits

    struct Limits {
        var depth = StoreLocator.depthLimit
        var entries = StoreLocator.entryLimit
    }

    /// - Parameters:
    ///   - tree: The directory below which to look; the folder of `location` if it is `nil`. It may be a symbolic link; nothing below
    ///     it is followed that is one.
    ///   - location: The default location.
    /// - Throws: ``StoreError`` `invalidName`, and of a group's folder `untrusted`.
    public init(name: String, under tree: URL? = nil, location: StoreLocation = .default) throws(StoreError) {
        try self.init(name: name, under: tree, location: location, environment: ProcessInfo.processInfo.environment)
    }

    init(
        name: String, under tree: URL?, location: StoreLocation, environment: [String: String], limits: Limits = Limits()
    ) throws(StoreError) {
        try StoreLocation.checkName(name)
        self.name = name
        let folder = try location.folder(making: false, environment: environment)
        self.tree = tree ?? folder
        self.location = location
        self.environment = environment
        self.limits = limits
        isTreeGiven = tree != nil
    }

    /// Looks for the container.
    ///
    /// Containers themselves are not searched. Names that are no UTF-8 are passed over.
    ///
    /// - Throws: ``StoreError`` `notFound` or `io` when the tree that was given is not there or can't be read; `untrusted`. That nothing is
    ///   found is no error.
    /// - Complexity: A listing of each folder, up to ``entryLimit`` names; a small read for each candidate.
    public func search() throws(StoreError) -> StoreSearch {
        var walk = StoreWalk(name: name, limits: limits)
        if let tree {
            do {
                try walk.search(tree.absoluteURL)
            } catch {
                // The folder of a location may not have been made yet.
                guard error.code == .notFound, !isTreeGiven else { throw error }
            }
        }
        var isGiven = false
        if case .directory = location { isGiven = true }
        let place = try location.containerURL(named: name, makingFolder: false, environment: environment)
        // A directory that was named by its path may be a link; what lies in a folder of data must not.
        walk.look(at: place.absoluteURL, followsLink: isGiven)
        return walk.result()
    }
}
