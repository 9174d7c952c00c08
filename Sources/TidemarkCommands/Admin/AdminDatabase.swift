package import Foundation
package import TidemarkEmbeddedCloud
package import TidemarkIdentity

/// A cloud in a database that a command of `tidemark admin` works on.
package struct AdminDatabase: Sendable {
    package typealias Verify =
        @Sendable (_ progress: (CloudVerification.Progress) throws -> Void) async throws -> CloudVerification.Report

    /// The cloud.
    let cloud: EmbeddedCloud
    /// Who may come in.
    let credentials: CredentialStore
    /// Whether the database had no cloud before it was opened.
    let isNew: Bool
    /// Examines it.
    let verify: Verify

    package init(cloud: EmbeddedCloud, credentials: CredentialStore, isNew: Bool, verify: @escaping Verify) {
        (self.cloud, self.credentials, self.isNew, self.verify) = (cloud, credentials, isNew, verify)
    }
}

/// Opens clouds in databases. The program `tidemark-server` does; the tool itself can do without a library of databases, and becomes that
/// program.
package protocol AdminDatabaseOpener: Sendable {
    /// Opens the cloud of a database.
    ///
    /// - Parameter makes: Whether to make one where there is none.
    /// - Throws: ``AdminFailure``.
    func open(_ storage: StorageOptions, makes: Bool) async throws(AdminFailure) -> AdminDatabase
    /// Lets go of all that was opened. A program that ends while a library of connections is at work may crash.
    func close() async
    /// Copies a cloud.
    ///
    /// - Parameters:
    ///   - directory: One of the places.
    ///   - storage: The other one.
    ///   - isIntoDatabase: Which of them has the cloud.
    /// - Throws: ``AdminFailure``.
    func move(
        _ directory: URL, _ storage: StorageOptions, intoDatabase isIntoDatabase: Bool,
        progress: @escaping @Sendable (AdminMoveProgress) -> Void
    ) async throws(AdminFailure) -> AdminMoveReport
}

/// What opens clouds in databases for the commands of this task.
package enum AdminDatabases {
    @TaskLocal package static var opener: (any AdminDatabaseOpener)?
}

/// Why a command of `tidemark admin` does not find what it works on.
package struct AdminFailure: Error {
    /// What is wrong, where, and what helps.
    let message: String
    /// As in sysexits.h.
    let status: Int32
    /// Whether all is well, but for the cloud, which is not there.
    var isOfMissingCloud: Bool { status == ExitStatus.noInput.rawValue }

    package init(_ message: String, status: Int32) { (self.message, self.status) = (message, status) }
}
