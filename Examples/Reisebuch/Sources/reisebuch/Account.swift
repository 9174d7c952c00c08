import Foundation
import ReisebuchModel
import Tidemark
import TidemarkEmbeddedCloud

/// Who is signed in, and with which cloud: a file beside the travel book.
struct Account: Codable {
    static let container = "org.example.reisebuch"

    var cloud: String
    var email: String

    private static func file(in folder: URL) -> URL { folder.appendingPathComponent("account.json") }

    static func databases(of folder: URL) async throws -> CloudDatabases {
        guard let data = try? Data(contentsOf: file(in: folder)) else { throw NotSignedIn() }
        let account = try JSONDecoder().decode(Account.self, from: data)
        let cloud = try EmbeddedCloud(at: URL(fileURLWithPath: account.cloud, isDirectory: true))
        return try cloud.databases(of: container, account: try await cloud.account(account.email)?.id)
    }

    func save(in folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(self).write(to: Self.file(in: folder))
    }

    struct NotSignedIn: LocalizedError {
        var errorDescription: String? { "Noch ist niemand angemeldet: reisebuch sign-in --cloud ORDNER --email ADRESSE" }
    }
}
