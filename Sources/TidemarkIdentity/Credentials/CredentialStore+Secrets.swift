import TidemarkCloudEngine

extension CredentialStore {
    /// The secrets under which signatures are valid: the present one, and the previous one in its grace period.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    func secrets() throws(CredentialError) -> [[UInt8]] {
        let now = now()
        return try cache.look { state in
            [state.secret] + (state.previous.map { $0.until > now ? [$0.secret] : [] } ?? [])
        }
    }

    /// Replaces the secret that session tokens, addresses of uploads and downloads, sign-in pages and device tokens are signed with.
    ///
    /// It takes effect at once in all processes. API tokens, keys and passwords stay: they do not depend on it.
    ///
    /// - Parameter grace: How long earlier signatures stay valid: microseconds. A session that is used meanwhile gets a new
    ///   token. With 0, all earlier signatures and all sessions end at once, which is right when somebody has seen the secret.
    /// - Returns: The number of sessions that were ended.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    @discardableResult
    public func rotateSecret(grace: Int64 = 0) async throws(CredentialError) -> Int {
        let (made, until) = (random(32), grace > 0 ? now() + grace : nil)
        return try await stored { try await storage.replaceSecret(by: made, keepingPreviousUntil: until) }
    }
}
