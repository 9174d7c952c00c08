import ArgumentParser
import Foundation
import TidemarkSQLite
import TidemarkStore

/// The arguments of a command that follows a link: the link, and the container.
struct LinkArguments: ParsableArguments {
    /// The help text on both.
    static let discussion = """
        The link says the server and the container that it leads to. Without a container on the command line it is the one that \
        TIDEMARK_CONTAINER names, or else the only one in the current directory that is signed in there. A link has characters that \
        a shell reads: put it in quotes.
        """

    /// - Parameter command: The command's name.
    static func usage(_ command: String, _ options: String) -> String {
        "tidemark share \(command) [<container>] <link> [--into <container>] \(options)"
    }

    @Argument(
        help: ArgumentHelp("The link, as it was sent, in quotes. A container may stand before it.", valueName: "link"))
    var words: [String]

    @Option(name: .customLong("into"), help: ArgumentHelp("The container; the same as before the link.", valueName: "container"))
    var named: String?

    private var first: String? { words.count > 1 ? words.first : nil }
    /// Whether the container stands behind the link, which is allowed, too.
    private var isTurned: Bool { first.map { $0.contains("://") && words.last?.contains("://") == false } ?? false }
    var link: String { (isTurned ? words.first : words.last) ?? "" }
    private var given: String? { named ?? (isTurned ? words.last : first) }

    func validate() throws {
        guard words.count <= 2, words.count == 1 || named == nil else {
            throw ValidationError("give one link, and before it or with --into one container; a link has to be in quotes")
        }
        if words.count == 1, !link.contains("://"), Self.isContainer(URL(fileURLWithPath: link)) {
            throw ValidationError("'\(link)' is a container, and the link is missing")
        }
    }

    /// The path of the named container; `nil` if none was named.
    var chosen: String? {
        if let given { return given }
        guard let path = ProcessInfo.processInfo.environment["TIDEMARK_CONTAINER"], !path.isEmpty else { return nil }
        return path
    }

    /// The path of the container.
    ///
    /// - Throws: The exit code if no container is named and not exactly one is signed in to the link's cloud; the reason is
    ///   printed first.
    func container() throws -> String {
        if let path = try chosen ?? fitting() { return path }
        let address = ShareAddress(link)
        guard let server = address.server, let command = address.signIn(address.freeName(in: Self.here)) else {
            throw ending(
                "no container in this directory is signed in to a cloud; name the one that is meant with --into", .noInput)
        }
        throw ending(
            """
            no container in this directory is signed in to the container '\(address.container ?? "default")' of \(server). Name one \
            elsewhere with --into, or sign in and follow the link again: \(command)
            """, .noInput)
    }

    /// The current directory.
    static var here: URL { URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true) }

    /// The only container in the current directory that is signed in to the link's cloud; `nil` if there is none.
    ///
    /// - Throws: The exit code if there are several; the reason is printed first.
    func fitting() throws -> String? {
        let address = ShareAddress(link)
        let folder = Self.here
        var (fitting, unreadable): ([String], [String]) = ([], [])
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let url = folder.appendingPathComponent(name, isDirectory: true)
            guard Self.isContainer(url) else { continue }
            do {
                let settings = try StoreReader(container: ContainerDirectory(openingAt: url)).accountSettings()
                if address.leads(to: settings) { fitting.append(name) }
            } catch {
                unreadable.append("\(name) can't be read: \(error.message)")
            }
        }
        if let path = fitting.first, fitting.count == 1 { return path }
        guard fitting.isEmpty else {
            throw ending(
                "\(fitting.joined(separator: ", ")) are signed in where the link leads; say which is meant with --into", .usage)
        }
        for reason in unreadable { Output.error("note: \(reason)") }
        return nil
    }

    /// The part of a message that names the container, if the command line does not name it.
    func choice(_ preposition: String, _ container: String) -> String { given == nil ? " \(preposition) \(container)" : "" }

    private static func isContainer(_ url: URL) -> Bool {
        FileManager.default.fileExists(atPath: url.appendingPathComponent("container.json").path)
    }
}

extension ShareAddress {
    /// Whether an account of these settings can follow the link.
    func leads(to settings: AccountSettings) -> Bool {
        guard settings.email != nil, let cloud = settings.cloud else { return false }
        guard let server else { return true }
        return cloud == server && (container.map { $0 == settings.cloudContainer } ?? true)
    }

    /// An unused name for a new container for the link's cloud.
    func freeName(in folder: URL) -> String {
        let isPlain = container?.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
        }
        let name = isPlain == true && container?.isEmpty == false && container != "default" ? container ?? "" : "Shared"
        let names = ["\(name).tidemark"] + (2..<100).map { "\(name)-\($0).tidemark" }
        return names.first { !FileManager.default.fileExists(atPath: folder.appendingPathComponent($0).path) }
            ?? "ANOTHER.tidemark"
    }
}
