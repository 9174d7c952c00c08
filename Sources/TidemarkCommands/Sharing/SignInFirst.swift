import ArgumentParser
import Foundation
import Tidemark
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Signs a container in to a link's cloud before the link is followed.
struct SignInFirst: ParsableArguments {
    @Option(help: ArgumentHelp("The address of your account on the server, to sign in with first.", valueName: "address"))
    var email: String?

    @Flag(help: "Reads the password from the first line of standard input.")
    var passwordStdin = false

    @OptionGroup var codeEntry: CodeEntry

    @OptionGroup var device: DeviceName

    /// Opens the container with which a link is followed: the named one, or one that fits, or else one that is signed in now.
    ///
    /// - Throws: The exit code if a person would have to be asked and there is no terminal; the reason is printed first.
    func open(_ arguments: LinkArguments) async throws -> (path: String, sharing: SharingAccess) {
        let (link, address) = (arguments.link, ShareAddress(arguments.link))
        guard let server = address.server else {
            let path = try arguments.container()
            return (path, try await SharingAccess.open(path, for: link))
        }
        if let path = try arguments.chosen ?? arguments.fitting() {
            if try !isWithoutAccount(path, at: server) { return (path, try await SharingAccess.open(path, for: link)) }
            try await signIn(path, address, server)
            return (path, try await SharingAccess.open(path, for: link))
        }
        let path = address.freeName(in: LinkArguments.here)
        try await signIn(path, address, server)
        return (path, try await SharingAccess.open(path, for: link))
    }

    /// Whether a container does not exist yet, or has no account now and had none at another server.
    private func isWithoutAccount(_ path: String, at server: String) throws -> Bool {
        let url = URL(fileURLWithPath: path)
        guard FileManager.default.fileExists(atPath: url.appendingPathComponent("container.json").path) else {
            // A file that is no container is refused by the command that opens it.
            return !FileManager.default.fileExists(atPath: url.path)
        }
        let settings = try StoreReader(container: ContainerDirectory(openingAt: url)).accountSettings()
        return settings.email == nil && (settings.cloud == nil || settings.cloud == server)
    }

    private func signIn(_ path: String, _ address: ShareAddress, _ server: String) async throws {
        let name = address.container ?? "default"
        // The check comes before a password is typed: it may only go over an encrypted connection, or to this machine.
        do {
            _ = try ServerAddress(server)
        } catch {
            throw ending("\(error.reason). Then follow the link again: \(address.signIn(path) ?? "") --insecure-http", .usage)
        }
        guard email != nil && passwordStdin || isatty(STDIN_FILENO) == 1 else {
            throw ending(
                """
                \(path) is not signed in to the container '\(name)' of \(server), and there is no terminal to ask for your account on. Name \
                it with --email ADDRESS --password-stdin, or sign in first: \(address.signIn(path) ?? "")
                """, .usage)
        }
        if !passwordStdin {
            Output.error("The link leads to the container '\(name)' of \(server). Sign in with your account there.")
        }
        let email = try email ?? Self.ask("e-mail address: ")
        // The environment is the link's. Otherwise a new container would be for development.
        let url = URL(fileURLWithPath: path)
        let isNew = !FileManager.default.fileExists(atPath: url.path)
        // Each value is joined to its option by `=`, so that no text of a link is taken for another option.
        var words = ["--server=\(server)", "--container=\(name)", "--email=\(email)", "--before-link"]
        if passwordStdin { words.append("--password-stdin") }
        words += codeEntry.words + device.words + ["--", path]
        if isNew, address.environment == .production {
            _ = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: url, environment: .production))
        }
        do {
            let command = try AccountSignIn.parse(words)
            try await command.run()
        } catch {
            // The container was made just now, and is empty.
            if isNew, address.environment == .production { try? FileManager.default.removeItem(at: url) }
            throw error
        }
    }

    private static func ask(_ question: String) throws -> String {
        FileHandle.standardError.write(Data(question.utf8))
        let line = readLine()?.trimmingCharacters(in: .whitespaces) ?? ""
        guard !line.isEmpty else { throw ending("no address was given", .usage) }
        return line
    }
}
