import Foundation
import TidemarkModel

/// A container's directory: `container.json`, `private.sqlite` and its files, `assets/`, `staging/`.
///
/// The format is specified in Documentation/Formats/store.md.
public struct ContainerDirectory: Hashable, Sendable {
    /// What `container.json` says.
    public struct Description: Codable, Hashable, Sendable {
        public var format: Int
        public var identity: UUID
        public var name: String
        public var environment: StoreEnvironment
    }

    /// The newest format that this version reads and writes.
    public static let format = 1

    public let url: URL
    public let description: Description

    public var privateStore: URL { url.appendingPathComponent("private.sqlite") }
    /// Every database file that a container may have; they share the assets.
    var stores: [URL] { [privateStore, url.appendingPathComponent("shared.sqlite")] }
    public var assets: URL { url.appendingPathComponent("assets", isDirectory: true) }
    public var staging: URL { url.appendingPathComponent("staging", isDirectory: true) }

    /// Opens the container at `url`.
    ///
    /// - Throws: ``StoreError`` `notFound`, `notAStore`, `newerFormat` or `io`.
    public init(openingAt url: URL) throws(StoreError) {
        let file = url.appendingPathComponent("container.json")
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            guard FileManager.default.fileExists(atPath: url.path) else {
                throw StoreError(.notFound, "there is no container at \(url.path)")
            }
            guard FileManager.default.fileExists(atPath: file.path) else {
                throw StoreError(.notAStore, "\(url.path) is no Tidemark container: it has no container.json")
            }
            throw StoreError(.io, "cannot read \(file.path): \(error.localizedDescription)")
        }
        struct Version: Codable { var format: Int }
        let decoder = JSONDecoder()
        guard let version = try? decoder.decode(Version.self, from: data) else {
            throw StoreError(.notAStore, "\(file.path) is not the description of a Tidemark container")
        }
        guard version.format <= Self.format else {
            throw StoreError(
                .newerFormat,
                "\(url.path) has format \(version.format); this version reads up to \(Self.format). Update Tidemark to open it")
        }
        do {
            description = try decoder.decode(Description.self, from: data)
        } catch {
            throw StoreError(.notAStore, "\(file.path) is not the description of a Tidemark container: \(error)")
        }
        self.url = url
    }

    /// Opens the container at `url`, or makes a new one there if nothing is there (or an empty directory).
    ///
    /// - Throws: ``StoreError`` `cannotCreate`, and those of `init(openingAt:)`.
    public init(openingOrCreatingAt url: URL, environment: StoreEnvironment = .development) throws(StoreError) {
        let files = FileManager.default
        var isDirectory: ObjCBool = false
        let exists = files.fileExists(atPath: url.path, isDirectory: &isDirectory)
        if exists, !isDirectory.boolValue {
            throw StoreError(.cannotCreate, "cannot make a container at \(url.path): a file is there")
        }
        let file = url.appendingPathComponent("container.json")
        if exists, files.fileExists(atPath: file.path) {
            self = try ContainerDirectory(openingAt: url)
            return
        }
        do {
            // A container is made beside its description, which comes last: a directory without one holds nothing yet.
            if exists, try files.contentsOfDirectory(atPath: url.path).contains(where: { !Self.isOurs($0) }) {
                throw StoreError(
                    .cannotCreate,
                    "cannot make a container in \(url.path): it holds other files. Name an empty or a new directory")
            }
            try files.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: exists ? nil : [.posixPermissions: 0o700])
            let description = Description(
                format: Self.format, identity: UUID(), name: url.deletingPathExtension().lastPathComponent,
                environment: environment)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try Self.writeDurably(encoder.encode(description), to: file)
            self.description = description
            self.url = url
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.cannotCreate, "cannot make a container at \(url.path): \(error.localizedDescription)")
        }
    }

    /// Writes a file that is there whole or not at all, also after a power cut.
    private static func writeDurably(_ data: Data, to url: URL) throws {
        let temporary = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)")
        try data.write(to: temporary)
        let file = try FileHandle(forUpdating: temporary)
        try file.synchronize()
        try file.close()
        guard rename(temporary.path, url.path) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        let folder = open(url.deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        if folder >= 0 {
            fsync(folder)
            close(folder)
        }
    }

    /// Whether a file may lie in a directory in which a container was begun and not finished.
    private static func isOurs(_ name: String) -> Bool {
        name.hasPrefix("private.sqlite") || name == "assets" || name == "staging" || name.hasPrefix(".")
    }
}
