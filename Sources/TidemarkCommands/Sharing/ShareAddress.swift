import Foundation
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A link into a share as people send it: a token, and the cloud and the container of the share.
///
/// `https://SERVER/share/CONTAINER/ENVIRONMENT/TOKEN` is a page of the server. An app opens
/// `tidemark://share/TOKEN?server=URL&container=NAME&environment=ENVIRONMENT`. Both forms name all that a device needs to follow
/// the link. A cloud in a directory is not named, because its path has no meaning on another machine.
struct ShareAddress: Equatable {
    let token: String
    /// The address of the server; `nil` for a cloud in a directory, and in links that do not name it.
    let server: String?
    /// The name of the container in the cloud.
    let container: String?
    /// The environment of the container; `nil` in links that do not name it.
    let environment: StoreEnvironment?

    init(token: String, _ settings: AccountSettings, _ environment: StoreEnvironment) {
        self.token = token
        server = settings.cloud.flatMap { ServerAddress.isAddress($0) ? $0 : nil }
        container = server == nil ? nil : settings.cloudContainer
        self.environment = server == nil ? nil : environment
    }

    /// Reads a link, or a token alone. An invalid address of a server is left out.
    init(_ text: String) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        token = String(parts[0].split { $0 == "/" || $0.isWhitespace }.last ?? "")
        if let page = Self.page(String(parts[0])) {
            (server, container, environment) = page
            return
        }
        var values: [String: String] = [:]
        for item in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let pair = item.split(separator: "=", maxSplits: 1)
            if pair.count == 2, let value = PercentCoding.decoded(pair[1]) { values[String(pair[0])] = value }
        }
        // An invalid address counts as missing. The command then asks for one.
        server = values["server"].flatMap { (try? ServerAddress($0, allowsInsecure: true))?.description }
        container = values["container"]
        environment = values["environment"].flatMap(StoreEnvironment.init(rawValue:))
    }

    /// The values in the address of a server's page; `nil` for another text.
    private static func page(_ text: String) -> (server: String?, container: String?, environment: StoreEnvironment?)? {
        let steps = text.split(separator: "/", omittingEmptySubsequences: false)
        guard ServerAddress.isAddress(text), steps.count >= 7, steps[steps.count - 4] == "share",
            let environment = StoreEnvironment(rawValue: String(steps[steps.count - 2])),
            let container = PercentCoding.decoded(steps[steps.count - 3]),
            let server = try? ServerAddress(steps.dropLast(4).joined(separator: "/"), allowsInsecure: true)
        else { return nil }
        return (server.description, container, environment)
    }

    var text: String {
        if let server, let container, let environment {
            return "\(server)/share/\(PercentCoding.encoded(container))/\(environment.rawValue)/\(token)"
        }
        let items = [("server", server), ("container", container)].compactMap { name, value in
            value.map { "\(name)=\(PercentCoding.encoded($0))" }
        }
        // The scheme is always written, because a bare token may look like an option.
        return "tidemark://share/\(token)" + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))
    }

    /// The command that signs a container in to the link's cloud; `nil` if the link does not name a cloud.
    func signIn(_ directory: String) -> String? {
        guard let server else { return nil }
        let named = container.map { " --container \(Self.quoted($0))" } ?? ""
        return "tidemark account sign-in \(Self.quoted(directory)) --server \(Self.quoted(server))\(named) --email ADDRESS"
    }

    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
                || "-._~/:".utf8.contains(byte)
        }
        return isPlain && !text.isEmpty ? text : "'\(text.replacingOccurrences(of: "'", with: "'\\''"))'"
    }
}
