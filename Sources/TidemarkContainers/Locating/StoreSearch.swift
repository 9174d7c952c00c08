public import Foundation
public import TidemarkSQLite
public import TidemarkStore

/// What a search for a container has found.
public struct StoreSearch: Hashable, Sendable {
    /// Containers that can be opened as far as can be told without opening them, the best first.
    public internal(set) var candidates: [StoreCandidate] = []
    /// Items that have the right name and are not containers, containers in the wrong place, and folders that can't be read.
    public internal(set) var skipped: [SkippedStore] = []
    /// Whether all folders were looked into. Where it is `false`, there were too many, or they lay too deep.
    public internal(set) var isComplete = true

    /// The one to open.
    public var best: StoreCandidate? { candidates.first }
}

/// A container of the name that was looked for.
public struct StoreCandidate: Hashable, Sendable {
    /// What the place of a container says of it. The order is that of preference.
    public enum Kind: String, CaseIterable, Codable, Sendable {
        /// In a folder `store`: a cloud stands behind it.
        case cloudBacked
        /// In a folder `store` in a folder `local`: it is kept on this device only.
        case local
        /// At the default location.
        case defaultLocation = "default"
    }

    /// Which kind of place the container is in; it decides the order of preference.
    public let kind: Kind
    /// The container's directory, with its description read. None of its stores has been opened.
    public let container: ContainerDirectory
    /// Why the container was chosen as a candidate, in a sentence for people.
    public let reason: String

    /// The container's folder.
    public var url: URL { container.url }
}

/// What was found and is no candidate.
public struct SkippedStore: Hashable, Sendable {
    /// The path that was found.
    public let url: URL
    /// What is wrong with it; `nil` for a container that only lies in the wrong place.
    public let code: StoreError.Code?
    /// Why it is not a candidate, in a sentence for people.
    public let reason: String
}

extension StoreCandidate.Kind: Comparable {
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self)! }

    var reason: String {
        switch self {
        case .cloudBacked: "it lies in a folder 'store': a cloud stands behind it"
        case .local: "it lies in 'local/store': it is kept on this device only"
        case .defaultLocation: "it lies at the default location"
        }
    }
}
