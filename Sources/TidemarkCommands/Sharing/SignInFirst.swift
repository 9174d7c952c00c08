import ArgumentParser
import Foundation
import Tidemark
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Signs a container in where a link leads, before the link is followed.
struct SignInFirst: ParsableArguments {
    @Option(help: ArgumentHelp("The address of your account on the server, to sign in with first.", valueName: "address"))
    var email: String?

    @Flag(help: "Reads the password from the first line of standard input.")
    var passwordStdin = false

    @OptionGroup var codeEntry: CodeEntry

    @OptionGroup var device: DeviceName

    /// Opens the container that a link is followed with: the one that is named, or that fits, or else one that is signed in now.
    ///
    /// - Throws: The exit code where somebody would have to be asked and there is no terminal, after the reason was told.
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

    /// Whether a container is not there yet, or nobody is signed in with it and nobody was elsewhere.
    private func isWithoutAccount(_ path: String, at server: String) throws -> Bool {
        let url = URL(fileURLWithPath: path)
        guard FileManager.default.fileExists(atPath: url.appendingPathComponent("container.json").path) else {
            // What is there and is no container is for the command that opens it to refuse.
            return !FileManager.default.fileExists(atPath: url.path)
        }
        let settings = try StoreReader(container: ContainerDirectory(openingAt: url)).accountSettings()
        return settings.email == nil && (settings.cloud == nil || settings.cloud == server)
    }

    private func signIn(_ path: String, _ address: ShareAddress, _ server: String) async throws {
        let name = address.container ?? "default"
        // Before anybody types a password: it goes over an encrypted connection, or to this machine.
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
        // As the link says: a new container is one of development otherwise.
        let url = URL(fileURLWithPath: path)
        let isNew = !FileManager.default.fileExists(atPath: url.path)
        // What a link says can't be taken for another option.
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
            // Nothing is in it yet.
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
