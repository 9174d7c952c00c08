public import Foundation
public import TidemarkSQLite
public import TidemarkStore

/// The result of a search for a container.
public struct StoreSearch: Hashable, Sendable {
    /// The containers that were found, the best first. Their descriptions were read; their stores were not opened.
    public internal(set) var candidates: [StoreCandidate] = []
    /// Items that have the right name and are not containers, containers in the wrong place, and folders that can't be read.
    public internal(set) var skipped: [SkippedStore] = []
    /// Whether all folders were searched. `false` if there were too many names, or folders too deep.
    public internal(set) var isComplete = true

    /// The container to open: the first candidate.
    public var best: StoreCandidate? { candidates.first }
}

/// A container that has the name that was searched for.
public struct StoreCandidate: Hashable, Sendable {
    /// The kind of a container's place. The cases are in the order of preference.
    public enum Kind: String, CaseIterable, Codable, Sendable {
        /// The container is in a folder `store`: it synchronises with a cloud.
        case cloudBacked
        /// The container is in a folder `store` in a folder `local`: it is kept on this device only.
        case local
        /// The container is at the default location.
        case defaultLocation = "default"
    }

    /// The kind of the container's place. It decides the order of preference.
    public let kind: Kind
    /// The container's directory, with its description read. None of its stores has been opened.
    public let container: ContainerDirectory
    /// Why the container was chosen as a candidate, in a sentence for people.
    public let reason: String

    /// The container's folder.
    public var url: URL { container.url }
}

/// An item that was found and is not a candidate.
public struct SkippedStore: Hashable, Sendable {
    /// The path that was found.
    public let url: URL
    /// The error of the item; `nil` for a container that is only in the wrong place.
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
