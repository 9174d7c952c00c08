public import Foundation
public import TidemarkSQLite
import TidemarkStore

/// Finds a container by its name. A widget or an extension needs this if it does not know where the app keeps the container.
///
/// Under a directory tree, `…/store/NAME.tidemark` comes first, `…/local/store/NAME.tidemark` second, and the default location
/// last. Of several containers of one kind, the least deep comes first, then the first by path. The search opens nothing for
/// writing, takes no lock and changes no byte.
///
/// ```swift
/// let locator = try StoreLocator(name: "Journal", location: .group("group.com.example.journal"))
/// guard let journal = try locator.search().best else { return }
/// let reader = try StoreReader(container: journal.container)
/// ```
public struct StoreLocator: Sendable {
    /// The depth below the tree's own folder to which folders are searched.
    public static let depthLimit = 12
    /// The most names that a search reads. The least deep folders are read first.
    public static let entryLimit = 200_000

    /// The container's name, without `.tidemark`.
    public let name: String
    /// The tree that is searched; `nil` for none.
    public let tree: URL?
    /// The default location, which comes last.
    public let location: StoreLocation
    private let environment: [String: String]
    private let isTreeGiven: Bool
    private let limits: Limits

    struct Limits {
        var depth = StoreLocator.depthLimit
        var entries = StoreLocator.entryLimit
    }

    /// Prepares a search.
    ///
    /// - Parameters:
    ///   - name: The container's name, without `.tidemark`.
    ///   - tree: The directory to search; `nil` for the folder of `location`. It may be a symbolic link. Symbolic links below it
    ///     are not followed.
    ///   - location: The default location.
    /// - Throws: ``StoreError`` `invalidName`; `untrusted` for a group's folder.
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

    /// Searches for the container.
    ///
    /// Containers themselves are not searched. Names that are not UTF-8 are skipped.
    ///
    /// - Returns: What was found; without candidates if there is no such container.
    /// - Throws: ``StoreError`` `notFound` or `io` when a tree was given and is missing or can't be read; `untrusted`.
    /// - Complexity: Lists each folder, up to ``entryLimit`` names; one small read for each candidate.
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
        // A directory that the caller has named may be a symbolic link. In the data home, symbolic links are not followed.
        walk.look(at: place.absoluteURL, followsLink: isGiven)
        return walk.result()
    }
}
