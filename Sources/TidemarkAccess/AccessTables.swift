import Foundation
import GRDB
import TidemarkModel

/// The layout of `access.sqlite`; see `Documentation/Formats/access.md`.
enum AccessTables {
    static let file = "access.sqlite"
    static let applicationID: Int32 = 0x5469_644b
    static let version: Int32 = 1

    static let sql = """
        CREATE TABLE counters (revision INTEGER NOT NULL) STRICT;
        INSERT INTO counters (revision) VALUES (0);
        CREATE TABLE secrets (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE containers (name TEXT PRIMARY KEY, added INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE tokens (id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, container TEXT NOT NULL, environment TEXT NOT NULL,
            name TEXT NOT NULL, redirect TEXT, popup TEXT, origins TEXT NOT NULL, made INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE keys (id TEXT PRIMARY KEY, container TEXT NOT NULL, environment TEXT NOT NULL, name TEXT NOT NULL,
            account TEXT NOT NULL, public_key BLOB NOT NULL, made INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE passwords (account TEXT PRIMARY KEY, log_n INTEGER NOT NULL, r INTEGER NOT NULL, p INTEGER NOT NULL,
            salt BLOB NOT NULL, digest BLOB NOT NULL, changed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE sessions (id BLOB PRIMARY KEY, account TEXT NOT NULL, container TEXT NOT NULL, environment TEXT NOT NULL,
            kind TEXT NOT NULL, began INTEGER NOT NULL, kept INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX sessions_by_account ON sessions (account);
        CREATE INDEX sessions_by_kept ON sessions (kept);
        """

    /// Tells whoever keeps a picture of the book that it has changed. Sessions that begin do not change it.
    static func bump(_ db: Database) throws { try db.execute(sql: "UPDATE counters SET revision = revision + 1") }

    static func environment(_ row: Row, _ column: String) throws -> StoreEnvironment {
        guard let environment = StoreEnvironment(rawValue: row[column]) else { throw damaged("environment") }
        return environment
    }

    static func damaged(_ what: String) -> AccessError {
        AccessError(.storage, "\(file) is damaged: it has a wrong \(what)")
    }
}

extension Session.Kind {
    /// How it is stored; stored texts are never used for anything else.
    var stored: String {
        switch self {
        case .web(staysSignedIn: false): "web"
        case .web(staysSignedIn: true): "web-stay"
        case .device: "device"
        }
    }

    init(stored: String) throws {
        switch stored {
        case "web": self = .web(staysSignedIn: false)
        case "web-stay": self = .web(staysSignedIn: true)
        case "device": self = .device
        default: throw AccessTables.damaged("kind of session")
        }
    }
}

extension APIToken {
    init(_ row: Row) throws {
        let (redirect, popup): (String?, String?) = (row["redirect"], row["popup"])
        let callback: SignInCallback
        switch (redirect, popup) {
        case (let redirect?, nil): callback = .redirect(redirect)
        case (nil, let popup?): callback = .popup(origin: popup)
        default: throw AccessTables.damaged("callback")
        }
        let origins: String = row["origins"]
        self.init(
            id: row["id"], container: row["container"], environment: try AccessTables.environment(row, "environment"),
            name: row["name"], callback: callback, origins: try JSONDecoder().decode([String].self, from: Data(origins.utf8)),
            made: row["made"])
    }
}

extension ServerKey {
    init(_ row: Row) throws {
        self.init(
            id: row["id"], container: row["container"], environment: try AccessTables.environment(row, "environment"),
            name: row["name"], account: row["account"], made: row["made"],
            publicKey: try PublicKey(der: Array(row["public_key"] as Data)))
    }
}

/// A row of `sessions`.
struct SessionRow: Sendable {
    let id: [UInt8]
    let account, container: String
    let environment: StoreEnvironment
    let kind: Session.Kind
    let began: Int64
    /// When the row may go.
    let kept: Int64

    init(_ row: Row) throws {
        id = Array(row["id"] as Data)
        (account, container) = (row["account"], row["container"])
        environment = try AccessTables.environment(row, "environment")
        kind = try Session.Kind(stored: row["kind"])
        (began, kept) = (row["began"], row["kept"])
    }

    func session(issued: Int64, expires: Int64) -> Session {
        Session(
            id: Digest.hexadecimal(id), account: account, container: container, environment: environment, kind: kind,
            began: began,
            issued: issued, expires: expires)
    }
}
