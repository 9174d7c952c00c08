import TidemarkCloudEngine

extension CredentialStore {
    /// The secrets under which signatures are good: the present one, and the one before while that is so.
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
    /// - Parameter grace: For how long what was signed before stays good: microseconds. A session that is used meanwhile gets a new token.
    ///   With 0, everything that was given out ends at once, as is right when the secret was seen by somebody.
    /// - Returns: How many sessions were ended.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    @discardableResult
    public func rotateSecret(grace: Int64 = 0) async throws(CredentialError) -> Int {
        let (made, until) = (random(32), grace > 0 ? now() + grace : nil)
        return try await stored { try await storage.replaceSecret(by: made, keepingPreviousUntil: until) }
    }
}
