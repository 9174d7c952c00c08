import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The cloud as a whole: the containers that are served, and the secret that signs.
extension Administration {
    /// Serves a container. A container that is served already stays as it is.
    ///
    /// - Throws: ``AdministrationError`` `invalid` for a malformed name; `forbidden`, `busy`.
    package func addContainer(_ name: String) async throws(AdministrationError) {
        try demandOperator("serving containers")
        let isThere = try await wrapped {
            try CredentialStore.check(container: name)
            try await credentials.refresh()
            return try credentials.hasContainer(name)
        }
        guard !isThere else { return }
        try await wrapped { try await credentials.addContainer(name) }
        try await audit("container.add", container: name, after: "served")
    }

    /// Serves a container no longer; what is stored in it stays.
    ///
    /// - Throws: ``AdministrationError`` `notFound` for one that is not served; `forbidden`, `busy`.
    package func removeContainer(_ name: String) async throws(AdministrationError) {
        try demandOperator("serving containers")
        try await wrapped { try await credentials.removeContainer(name) }
        try await audit("container.remove", container: name, before: "served")
    }

    /// Replaces the secret that signs.
    ///
    /// - Parameter days: For how many days signatures by the old secret stay valid. With 0 all sessions end.
    /// - Returns: How many sessions have ended.
    package func rotateSecret(graceDays days: Int) async throws(AdministrationError) -> Int {
        try demandOperator("replacing the secret")
        let ended = try await wrapped { try await credentials.rotateSecret(grace: Int64(days) * 86_400_000_000) }
        try await audit(
            "secrets.rotate", subject: "grace of \(days) days", before: ended == 0 ? "" : "\(ended) sessions")
        return ended
    }
}
