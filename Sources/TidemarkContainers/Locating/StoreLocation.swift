public import Foundation
public import TidemarkSQLite
import TidemarkStore

/// The place of a container.
///
/// ```swift
/// let journal = try StoreLocation.group("group.com.example.journal").containerURL(named: "Journal", makingFolder: true)
/// let container = try ContainerDirectory(openingOrCreatingAt: journal)
/// ```
public enum StoreLocation: Hashable, Sendable {
    /// The folder of the person's data: `$XDG_DATA_HOME/tidemark` or `~/.local/share/tidemark` on Linux, `tidemark` in Application
    /// Support on Apple's systems.
    case `default`
    /// A folder in which containers lie side by side.
    case directory(URL)
    /// The folder that the programs of a group share: `$XDG_DATA_HOME/tidemark-groups/IDENTIFIER` or
    /// `~/.local/share/tidemark-groups/IDENTIFIER` on Linux, the App Group's container on Apple's systems.
    ///
    /// The identifier is a reverse domain name of at least two parts; on iOS it begins with `group.`.
    case group(String)

    /// The extension of containers' directories.
    public static let pathExtension = "tidemark"

    /// Returns the directory of the container of a name. The container need not exist.
    ///
    /// On Linux, a group's folder is checked each time: it must belong to the user, and no other user may write to it. The data
    /// home itself is trusted.
    ///
    /// - Parameters:
    ///   - name: The container's name, without the extension.
    ///   - makingFolder: Whether the folder for the container is made if it is missing, with permissions for its owner alone
    ///     (0700).
    /// - Throws: ``StoreError`` `invalidName` for a name or an identifier that is not allowed; `untrusted` for a group's folder
    ///   that belongs to another user, is a symbolic link, or can be written by others; `cannotCreate`, `diskFull` or `io` when
    ///   the folder can't be made.
    public func containerURL(named name: String, makingFolder: Bool = false) throws(StoreError) -> URL {
        try containerURL(named: name, makingFolder: makingFolder, environment: ProcessInfo.processInfo.environment)
    }

    package func containerURL(named name: String, makingFolder: Bool, environment: [String: String]) throws(StoreError) -> URL {
        try Self.checkName(name)
        let folder = try folder(making: makingFolder, environment: environment)
        return folder.appendingPathComponent("\(name).\(Self.pathExtension)", isDirectory: true)
    }

    /// The folder in which containers lie side by side.
    package func folder(making: Bool, environment: [String: String]) throws(StoreError) -> URL {
        switch self {
        case .directory(let url):
            if making { try Self.make([url.deletingLastPathComponent(), url]) }
            return url
        case .default:
            let folder = try Self.dataHome(environment).appendingPathComponent("tidemark", isDirectory: true)
            if making { try Self.make([folder.deletingLastPathComponent(), folder]) }
            return folder
        case .group(let identifier):
            try Self.checkGroup(identifier)
            return try Self.groupFolder(identifier, making: making, environment: environment)
        }
    }

    /// The folder in which programs keep a person's data.
    private static func dataHome(_ environment: [String: String]) throws(StoreError) -> URL {
        #if canImport(Darwin)
            guard let url = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first else {
                throw StoreError(.cannotCreate, "there is no folder for application support")
            }
            return url
        #else
            // By the XDG specification, a relative path is ignored.
            if let path = environment["XDG_DATA_HOME"], path.hasPrefix("/") {
                return URL(fileURLWithPath: path, isDirectory: true)
            }
            let home: URL
            if let path = environment["HOME"], path.hasPrefix("/") {
                home = URL(fileURLWithPath: path, isDirectory: true)
            } else {
                home = FileManager.default.homeDirectoryForCurrentUser
            }
            return home.appendingPathComponent(".local/share", isDirectory: true)
        #endif
    }

    private static func groupFolder(
        _ identifier: String, making: Bool, environment: [String: String]
    ) throws(StoreError) -> URL {
        #if canImport(Darwin)
            guard let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: identifier) else {
                throw StoreError(
                    .cannotCreate, "there is no container of the app group \(identifier). Give the app the entitlement for it")
            }
            return url
        #else
            let home = try dataHome(environment)
            let groups = home.appendingPathComponent("tidemark-groups", isDirectory: true)
            let folder = groups.appendingPathComponent(identifier, isDirectory: true)
            if making { try make([home, groups, folder]) }
            // A user who may write to the folder above could replace the group's folder.
            for place in [groups, folder] { try checkOwnership(of: place.path) }
            return folder
        #endif
    }

    /// Makes folders, each in the one before.
    private static func make(_ folders: [URL]) throws(StoreError) {
        do {
            for folder in folders { try Folder.make(folder, mode: 0o700) }
        } catch {
            throw error.code == .diskFull ? error : StoreError(.cannotCreate, error.message)
        }
    }

    /// Makes sure that a folder, if it exists, belongs to this user, and that no other user may write to it.
    private static func checkOwnership(of path: String) throws(StoreError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw Folder.failure("look at the folder", path)
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: break
        case S_IFLNK:
            throw StoreError(
                .untrusted, "\(path) is a symbolic link, and the folder of a group must not be one. Put a folder in its place")
        default: throw StoreError(.untrusted, "\(path) is not a folder. Remove what is there")
        }
        guard status.st_uid == geteuid() else {
            throw StoreError(
                .untrusted,
                """
                \(path) belongs to the user \(status.st_uid), and this program runs as \(geteuid()). Remove it, or have \
                XDG_DATA_HOME name a folder of one's own
                """)
        }
        guard status.st_mode & 0o022 == 0 else {
            throw StoreError(.untrusted, "others may write to \(path). Look at what is in it, then run: chmod go-w '\(path)'")
        }
    }
}

extension StoreLocation {
    /// The longest file name in bytes, less the extension.
    private static let nameLimit = 255 - ".\(pathExtension)".utf8.count

    /// Makes sure that a text can name a container: it becomes the name of a directory.
    static func checkName(_ name: String) throws(StoreError) {
        let shown = "'\(name.prefix(100))' can't name a container"
        guard !name.isEmpty else { throw StoreError(.invalidName, "an empty name can't name a container") }
        guard name.utf8.count <= nameLimit else {
            throw StoreError(.invalidName, "\(shown): it has \(name.utf8.count) bytes, and at most \(nameLimit) are allowed")
        }
        guard !name.hasPrefix(".") else { throw StoreError(.invalidName, "\(shown): it begins with a dot") }
        guard !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7f }) else {
            throw StoreError(.invalidName, "\(shown): it has a slash or a control character in it")
        }
        guard !name.lowercased().hasSuffix(".\(pathExtension)") else {
            throw StoreError(.invalidName, "\(shown): leave '.\(pathExtension)' out, which is added")
        }
    }

    /// Makes sure that a text is a reverse domain name: it becomes the name of a folder.
    static func checkGroup(_ identifier: String) throws(StoreError) {
        let shown = "'\(identifier.prefix(100))' can't identify a group"
        guard identifier.utf8.count <= 255 else {
            throw StoreError(.invalidName, "\(shown): it has \(identifier.utf8.count) bytes, and at most 255 are allowed")
        }
        let parts = identifier.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count > 1, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isPartOfDomainName) }) else {
            throw StoreError(
                .invalidName,
                "\(shown): it takes a reverse domain name of ASCII letters, digits and hyphens, as in group.com.example.journal")
        }
    }

    private static func isPartOfDomainName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}
