import TidemarkIdentity
import TidemarkModel

/// What a person has allowed the developers of a container: to see and change the person's records in production, until a day.
///
/// Consent is written in the audit log: a person's last entry about a container counts. Nobody else writes such entries, and none
/// is changed.
package struct Consent: Hashable, Sendable {
    package let container: String
    /// Microseconds since 1970 UTC.
    package let until: Int64

    /// For how many days a person can choose to give it.
    package static let days = [1, 7, 30]
    /// The action of the entries, after `account.`.
    static let action = "consent"

    /// The consents of an account that are good now, by the names of containers.
    ///
    /// - Complexity: O(times that the account has given or ended consent in 30 days).
    static func all(of account: String, _ credentials: CredentialStore) async throws -> [Consent] {
        let (now, longest) = (credentials.time, Int64(days.max() ?? 0) * 86_400_000_000)
        let entries = try await credentials.consentLog(of: account, since: now - longest)
        var seen: Set<String> = []
        return entries.compactMap { entry -> Consent? in
            // Only entries by the person count.
            guard entry.event.action == .own(action), entry.event.actor == account, entry.event.account == account,
                entry.event.outcome == "done", seen.insert(entry.event.container).inserted,
                let container = container(of: entry.event.container), let until = FieldText.time(entry.event.after),
                until > now, until <= entry.at + longest
            else { return nil }
            return Consent(container: container, until: until)
        }.sorted { $0.container < $1.container }
    }

    /// How entries name a container: consent is about production.
    static func place(_ container: String) -> String { "\(container)/\(StoreEnvironment.production.rawValue)" }

    private static func container(of place: String) -> String? {
        let end = "/\(StoreEnvironment.production.rawValue)"
        return place.hasSuffix(end) ? String(place.dropLast(end.count)) : nil
    }
}
