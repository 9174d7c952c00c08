package import Foundation
package import TidemarkEmbeddedCloud
package import TidemarkIdentity

/// An opened cloud in a database, for a command of `tidemark admin`.
package struct AdminDatabase: Sendable {
    package typealias Verify =
        @Sendable (_ progress: (CloudVerification.Progress) throws -> Void) async throws -> CloudVerification.Report

    let cloud: EmbeddedCloud
    let credentials: CredentialStore
    /// Whether the database had no cloud before it was opened.
    let isNew: Bool
    /// Examines the cloud.
    let verify: Verify

    package init(cloud: EmbeddedCloud, credentials: CredentialStore, isNew: Bool, verify: @escaping Verify) {
        (self.cloud, self.credentials, self.isNew, self.verify) = (cloud, credentials, isNew, verify)
    }
}

/// Opens clouds in databases. Only the program `tidemark-server` can: the tool is built without libpq, and executes that program.
package protocol AdminDatabaseOpener: Sendable {
    /// Opens the cloud of a database.
    ///
    /// - Parameter makes: Whether to make a cloud if there is none.
    /// - Throws: ``AdminFailure``.
    func open(_ storage: StorageOptions, makes: Bool) async throws(AdminFailure) -> AdminDatabase
    /// Closes all that was opened. A program that ends while the threads of its connections are at work may crash.
    func close() async
    /// Copies a cloud.
    ///
    /// - Parameters:
    ///   - directory: The place in a directory.
    ///   - storage: The place in a database.
    ///   - isIntoDatabase: Whether the cloud is copied into the database; otherwise into the directory.
    /// - Throws: ``AdminFailure``.
    func move(
        _ directory: URL, _ storage: StorageOptions, intoDatabase isIntoDatabase: Bool,
        progress: @escaping @Sendable (AdminMoveProgress) -> Void
    ) async throws(AdminFailure) -> AdminMoveReport
}

/// The opener of clouds in databases for the commands of this task.
package enum AdminDatabases {
    @TaskLocal package static var opener: (any AdminDatabaseOpener)?
}

/// Why a command of `tidemark admin` can't open its cloud.
package struct AdminFailure: Error {
    /// What is wrong, where, and what helps.
    let message: String
    /// The exit code, as in sysexits.h.
    let status: Int32
    /// Whether the only fault is that the cloud does not exist.
    var isOfMissingCloud: Bool { status == ExitStatus.noInput.rawValue }

    package init(_ message: String, status: Int32) { (self.message, self.status) = (message, status) }
}
