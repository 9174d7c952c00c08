import CPostgres
import Foundation

/// The address of a database: a connection string of libpq, as `key=value` pairs or a URI. It may name several hosts.
///
/// A connection string with a password is refused, since other users can read the arguments of a process. libpq takes passwords
/// from `PGPASSWORD`, from the file that `PGPASSFILE` names, and from a service file.
package struct PostgresAddress: Sendable {
    /// The options that the string has, by libpq's names.
    let options: [String: String]
    /// What messages call the database, such as `database 'tidemark' at db1:5432`.
    package let name: String

    /// Reads a connection string.
    ///
    /// - Throws: `PostgresError` `address` for a text that is no connection string, or that contains a password. The message does
    ///   not repeat the password.
    package init(_ text: String) throws(PostgresError) {
        if let scheme = Self.otherScheme(text) {
            throw PostgresError(
                .address,
                "the address of the database begins with '\(scheme)://'. The database is PostgreSQL, and its address such as 'postgresql://USER@HOST/DATABASE'"
            )
        }
        var message: UnsafeMutablePointer<CChar>?
        let first = PQconninfoParse(text, &message)
        defer {
            PQfreemem(message)
            PQconninfoFree(first)
        }
        guard let first else {
            // libpq's message may repeat a password.
            var reason = ""
            if let message, !Self.mayContainPassword(text) { reason = ": \(PostgresText.line(message))" }
            throw PostgresError(
                .address,
                "the address of the database can't be read\(reason). It is such as 'postgresql://tidemark@db1:5432/tidemark' or 'host=db1 dbname=tidemark'"
            )
        }
        var options: [String: String] = [:]
        var option = first
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { options[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        for secret in Self.secrets where options[secret] != nil {
            throw PostgresError(
                .address,
                "the address of the database contains a password, which others can read among the arguments of the process. Give it by PGPASSWORD, PGPASSFILE or a service file"
            )
        }
        self.options = options
        name = Self.name(options)
    }

    /// Options that are secret; the last three are those of newer versions of libpq.
    private static let secrets = ["password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"]

    /// The scheme of a URI that libpq does not know; `nil` for any other text.
    private static func otherScheme(_ text: String) -> Substring? {
        guard let end = text.range(of: "://") else { return nil }
        let scheme = text[..<end.lowerBound]
        let isName = !scheme.isEmpty && scheme.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        return isName && scheme != "postgresql" && scheme != "postgres" ? scheme : nil
    }

    private static func mayContainPassword(_ text: String) -> Bool {
        text.lowercased().contains("password") || text.contains("@")
    }

    private static func name(_ options: [String: String]) -> String {
        let environment = ProcessInfo.processInfo.environment
        if let service = options["service"], options["host"] == nil { return "database of the service '\(service)'" }
        let database =
            options["dbname"] ?? environment["PGDATABASE"] ?? options["user"] ?? environment["PGUSER"] ?? NSUserName()
        let hosts = (options["host"] ?? options["hostaddr"] ?? environment["PGHOST"] ?? "").split(
            separator: ",", omittingEmptySubsequences: false)
        let ports = (options["port"] ?? environment["PGPORT"] ?? "5432").split(separator: ",", omittingEmptySubsequences: false)
        let places = hosts.enumerated().map { index, host in
            let port = ports.count == hosts.count ? ports[index] : ports.first ?? "5432"
            return host.isEmpty ? "the local socket, port \(port)" : "\(host):\(port.isEmpty ? "5432" : port)"
        }
        return "database '\(database)' at \(places.isEmpty ? "the local socket" : places.joined(separator: ", "))"
    }
}

/// Texts of libpq and of servers, for messages.
enum PostgresText {
    /// Returns a text as a line of at most 300 characters, without a final period.
    static func line(_ text: UnsafePointer<CChar>?) -> String { text.map { line(of: String(cString: $0)) } ?? "" }

    /// Returns a text as one line, with semicolons between its lines. Lines that libpq indents are left out, since they guess at
    /// causes, such as "Is the server running on that host and accepting TCP/IP connections?".
    static func line(of text: String) -> String {
        let all = text.split(whereSeparator: \.isNewline)
        let told = all.filter { !$0.hasPrefix("\t") }
        let lines = (told.isEmpty ? all : told).map { line in
            var line = line.split { $0.isWhitespace || ($0.asciiValue ?? 32) < 32 }.joined(separator: " ")
            while line.hasSuffix(".") { line.removeLast() }
            return line
        }
        return String(lines.filter { !$0.isEmpty }.joined(separator: "; ").prefix(300))
    }
}
