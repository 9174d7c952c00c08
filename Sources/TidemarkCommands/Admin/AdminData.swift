import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The place of the administered cloud: a directory, or a database and an asset storage.
struct AdminData: ParsableArguments {
    @Option(help: ArgumentHelp("The directory of the cloud.", valueName: "dir"))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "A file with a line 'option = value' for each, such as that of 'tidemark serve'. What does not say where the cloud is has no effect here.",
            valueName: "file"))
    var config: String?

    @OptionGroup(title: "A cloud of several servers")
    var storage: StorageOptions

    func validate() throws {
        guard data != nil || storage.database != nil else {
            throw ValidationError("say which cloud: --data <dir>, or --database <address> and --assets <place>")
        }
        guard data == nil || storage.database == nil else {
            throw ValidationError("--data and --database name two clouds; say one of them")
        }
    }

    /// Opens the cloud and its credential store, which have to exist.
    func open() async throws -> (cloud: EmbeddedCloud, credentials: CredentialStore) {
        guard let database = try await openedDatabase() else {
            let url = try existing(orBegin: true)
            try CloudAccess.checkMayWrite(url.path)
            if let exposure = CredentialStore.exposure(of: url) { Output.error("warning: \(exposure)") }
            return (try EmbeddedCloud(at: url), try CredentialStore(at: url))
        }
        return (database.cloud, database.credentials)
    }

    /// Opens the cloud for administration by the user who runs the command.
    func administration() async throws -> Administration {
        let (cloud, credentials) = try await open()
        return administration(cloud, credentials)
    }

    /// As ``administration()``, but makes the cloud if there is none, and reports that.
    func administrationOrMake() async throws -> Administration {
        let (cloud, credentials) = try await openOrMake()
        return administration(cloud, credentials)
    }

    private func administration(_ cloud: EmbeddedCloud, _ credentials: CredentialStore) -> Administration {
        var administration = Administration(cloud, credentials, by: .system(name: CredentialStore.systemUser))
        administration.placeOptions = repeated
        return administration
    }

    /// Opens the cloud and its credential store. Makes them if there are none, and reports that.
    private func openOrMake() async throws -> (cloud: EmbeddedCloud, credentials: CredentialStore) {
        if let database = try await openedDatabase(makes: true) {
            if database.isNew { Output.error("note: made a cloud in \(database.cloud.place)") }
            return (database.cloud, database.credentials)
        }
        let url = try directory()
        guard !EmbeddedCloud.exists(at: url) else { return try await open() }
        // If the folder is missing or can't be read, making the cloud there reports it.
        let entries = try? FileManager.default.contentsOfDirectory(atPath: url.path)
        guard entries?.isEmpty ?? true else {
            throw ending(
                "cannot make a cloud in \(url.path): it holds other files. Name an empty or a new directory", .cannotCreate)
        }
        do {
            let cloud = try EmbeddedCloud(at: url)
            let credentials = try CredentialStore(at: url)
            closeToOthers(url)
            Output.error("note: made a cloud at \(url.path)")
            return (cloud, credentials)
        } catch {
            throw ending("cannot make a cloud at \(url.path): \(error). Name a directory that you may write to", .cannotCreate)
        }
    }

    /// Opens the cloud; returns `nil` if there is none. Makes none.
    func openIfThere() async throws -> EmbeddedCloud? {
        if storage.database == nil { return EmbeddedCloud.exists(at: try directory()) ? try await open().cloud : nil }
        do {
            return try await openedDatabase()?.cloud
        } catch let failure as AdminFailure where failure.isOfMissingCloud {
            return nil
        }
    }

    /// Opens the cloud's database; returns `nil` for a cloud in a directory.
    func openedDatabase(makes: Bool = false) async throws -> AdminDatabase? {
        guard storage.database != nil else { return nil }
        guard let opener = AdminDatabases.opener else {
            throw ending("this program opens no database; run the command by 'tidemark admin'", .unavailable)
        }
        return try await opener.open(storage, makes: makes)
    }

    /// Closes a new cloud's directory to other users, if everybody may look into it. Its group keeps access if the directory has
    /// the setgid bit. A directory that is closed to others already keeps its mode, as its owner has prepared it. A failure is
    /// not reported here: the next use of the directory warns.
    private func closeToOthers(_ url: URL) {
        var status = stat()
        guard stat(url.path, &status) == 0, status.st_mode & 0o007 != 0 else { return }
        _ = chmod(url.path, status.st_mode & (status.st_mode & 0o2000 != 0 ? 0o7770 : 0o7700))
    }

    /// The directory of an existing cloud.
    ///
    /// - Parameter orBegin: Whether the error says how to begin a cloud.
    func existing(orBegin: Bool = false) throws -> URL {
        let url = try directory()
        guard EmbeddedCloud.exists(at: url) else {
            let other = orBegin ? ", or begin one with 'tidemark admin container add'" : ""
            throw ending("there is no cloud at \(url.path); check the directory\(other)", .noInput)
        }
        return url
    }

    /// Refuses a cloud in a database, for commands that PostgreSQL's own programs replace there.
    ///
    /// - Parameter remedy: The end of the message: how to do it for a cloud in a database.
    func demandDirectory(_ remedy: String) throws {
        guard storage.database == nil else { throw ending("this works on a cloud in a directory; \(remedy)", .usage) }
    }

    func directory() throws -> URL {
        // Files that are made there are for their owner only.
        _ = umask(0o077)
        return URL(fileURLWithPath: try fileURL(data ?? "", "the cloud").path, isDirectory: true)
    }
}

extension EmbeddedCloud {
    /// The addresses of the accounts, by their identifiers.
    func addresses() async throws -> [String: String] {
        Dictionary(try await allAccounts().map { ($0.id, $0.email) }) { first, _ in first }
    }
}

/// Returns the only identifier of a list that has a given beginning.
///
/// - Parameters:
///   - what: The kind of the identified object, in one word.
///   - list: The word of the command that lists these objects, if it is not `what`.
func identifier(
    _ beginning: String, of ids: [String], _ what: String, listedBy list: String? = nil, shownBy command: String? = nil
) throws -> String {
    let found = ids.filter { $0.hasPrefix(beginning.lowercased()) }
    guard found.count < 2 || found.contains(beginning) else {
        let several = what.hasSuffix("y") ? "\(what.dropLast())ies" : "\(what)s"
        throw ending("\(found.count) \(several) begin with '\(beginning)': write more of it", .usage)
    }
    guard !beginning.isEmpty, let first = found.first else {
        throw ending("there is no \(what) '\(beginning)'; see '\(command ?? "tidemark admin \(list ?? what) list")'", .noInput)
    }
    return found.contains(beginning) ? beginning : first
}

extension Wording {
    /// A time to the minute, in UTC.
    ///
    /// - Parameter time: The time in the form that JSON has.
    static func moment(_ time: String) -> String { String(time.prefix(16)).replacing("T", with: " ") }
}
