import Tidemark
import TidemarkHTTP

/// The code of the guide to a server. Not run: it opens the user's own container.
enum ServerGuide {
    static func run(password: String, code: String) async throws {
        let journal = try PersistentContainer(named: "Journal")
        let cloud = HTTPCloud(
            try ServerAddress("https://sync.example.org"), container: "iCloud.org.example.journal",
            session: SessionFile(at: journal.directory.session))
        if try cloud.userRecordName == nil {
            do {
                try await cloud.signIn(email: "ada@example.org", password: password)
            } catch  where error.code == .secondFactorRequired {
                // The account has a second factor: ask for the code of its app.
                try await cloud.signIn(email: "ada@example.org", password: password, code: code)
            }
        }

        let sync = try await journal.sync(with: cloud.databases)
        let report = try await sync.sync()
        print(report)
    }
}
