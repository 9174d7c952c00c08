import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The directory of the cloud that is administered.
struct AdminData: ParsableArguments {
    @Option(help: ArgumentHelp("The directory of the cloud.", valueName: "dir"))
    var data: String

    /// The cloud and its credential store, which have to be there.
    func open() throws -> (cloud: EmbeddedCloud, credentials: CredentialStore) {
        let url = try directory()
        guard EmbeddedCloud.exists(at: url) else {
            throw ending(
                "there is no cloud at \(url.path); check the directory, or begin one with 'tidemark admin container add'",
                .noInput)
        }
        try CloudAccess.checkMayWrite(url.path)
        if let exposure = CredentialStore.exposure(of: url) { Output.error("warning: \(exposure)") }
        return (try EmbeddedCloud(at: url), try CredentialStore(at: url))
    }

    /// The same, made if there are none; that is told.
    func openOrMake() throws -> (cloud: EmbeddedCloud, credentials: CredentialStore) {
        let url = try directory()
        guard !EmbeddedCloud.exists(at: url) else { return try open() }
        // Where there is none, or it can't be read, making the cloud there says so.
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

    /// Takes a directory that everybody may look into, and that has become the cloud's, for its owner alone; for its group, too, where files
    /// become the group's (setgid). What nobody else may look into is as somebody has prepared it. One where that fails is told when it is
    /// used the next time.
    private func closeToOthers(_ url: URL) {
        var status = stat()
        guard stat(url.path, &status) == 0, status.st_mode & 0o007 != 0 else { return }
        _ = chmod(url.path, status.st_mode & (status.st_mode & 0o2000 != 0 ? 0o7770 : 0o7700))
    }

    /// The directory of a cloud that is there.
    func existing() throws -> URL {
        let url = try directory()
        guard EmbeddedCloud.exists(at: url) else {
            throw ending("there is no cloud at \(url.path); check the directory", .noInput)
        }
        return url
    }

    func directory() throws -> URL {
        // What is made there is for its owner only.
        _ = umask(0o077)
        return URL(fileURLWithPath: try fileURL(data, "the cloud").path, isDirectory: true)
    }
}

extension EmbeddedCloud {
    /// The account of an address.
    func demandAccount(_ email: String) async throws -> StoredAccount {
        guard let account = try await account(email) else {
            throw ending(
                "the cloud \(directory.path) has no account \(email); see 'tidemark admin account list'", .noInput)
        }
        return account
    }

    /// The addresses of the accounts, by their identifiers.
    func addresses() async throws -> [String: String] {
        Dictionary(uniqueKeysWithValues: try await allAccounts().map { ($0.id, $0.email) })
    }
}

/// Makes sure that a container is served: what asks for one makes its folder, and a mistyped name should not.
func demandContainer(_ name: String, in credentials: CredentialStore) throws {
    guard try credentials.hasContainer(name) else {
        throw ending("no container '\(name)' is served; add it with 'tidemark admin container add'", .noInput)
    }
}

/// The one identifier that begins so, of those there are.
func identifier(_ beginning: String, of ids: [String], _ what: String) throws -> String {
    let found = ids.filter { $0.hasPrefix(beginning.lowercased()) }
    guard found.count < 2 || found.contains(beginning) else {
        throw ending("\(found.count) \(what)s begin with '\(beginning)': write more of it", .usage)
    }
    guard !beginning.isEmpty, let first = found.first else {
        throw ending("there is no \(what) '\(beginning)'; see 'tidemark admin \(what) list'", .noInput)
    }
    return found.contains(beginning) ? beginning : first
}

extension Wording {
    /// A moment to the minute, in UTC.
    ///
    /// - Parameter time: As JSON has it.
    static func moment(_ time: String) -> String { String(time.prefix(16)).replacing("T", with: " ") }
}
