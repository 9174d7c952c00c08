package import Foundation
import TidemarkCloud
import TidemarkModel

/// The source of the keys for S3. A file is read again at times, so it may change while a server runs.
package final class S3Credentials: Sendable {
    /// The keys that a request is signed with.
    struct Keys: Hashable, Sendable {
        var id: String
        var secret: String
        /// The token of temporary keys; `nil` for others.
        var token: String?

        /// - Parameter token: The token of temporary keys. An empty text is none.
        init(id: String, secret: String, token: String?) {
            (self.id, self.secret) = (id, secret)
            self.token = token?.isEmpty == false ? token : nil
        }
    }

    private enum Source: Sendable {
        case keys(Keys)
        case file(URL, profile: String)
    }

    private let source: Source
    private let known = LockedValue<(keys: Keys, until: ContinuousClock.Instant)?>(nil)
    /// How long the keys of a file are used before it is read again.
    private static let age = Duration.seconds(30)
    private static let sizeLimit = 1 << 20

    private init(_ source: Source) { self.source = source }

    /// The keys of the environment, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; otherwise a profile of the
    /// shared file, by `AWS_PROFILE` and `AWS_SHARED_CREDENTIALS_FILE`.
    package static func environment(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> S3Credentials {
        if let id = environment["AWS_ACCESS_KEY_ID"], let secret = environment["AWS_SECRET_ACCESS_KEY"], !id.isEmpty,
            !secret.isEmpty
        {
            return S3Credentials(.keys(Keys(id: id, secret: secret, token: environment["AWS_SESSION_TOKEN"])))
        }
        let home = environment["HOME"] ?? NSHomeDirectory()
        let path = environment["AWS_SHARED_CREDENTIALS_FILE"] ?? "\(home)/.aws/credentials"
        return file(URL(fileURLWithPath: path), profile: environment["AWS_PROFILE"] ?? "default")
    }

    /// The keys of a profile in a file such as `~/.aws/credentials`.
    package static func file(_ url: URL, profile: String = "default") -> S3Credentials {
        S3Credentials(.file(url, profile: profile))
    }

    /// Returns the keys.
    ///
    /// - Throws: `CloudError` `invalidArguments`, which names the file and no key.
    func keys() throws(CloudError) -> Keys {
        switch source {
        case .keys(let keys): return keys
        case .file(let url, let profile):
            if let known = known.withLock({ $0 }), ContinuousClock.now < known.until { return known.keys }
            let keys = try Self.read(url, profile)
            known.withLock { $0 = (keys, ContinuousClock.now + Self.age) }
            return keys
        }
    }

    private static func read(_ url: URL, _ profile: String) throws(CloudError) -> Keys {
        guard let handle = try? FileHandle(forReadingFrom: url), let data = try? handle.read(upToCount: sizeLimit) else {
            throw CloudError(
                .invalidArguments,
                "there are no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or make \(url.path) readable")
        }
        // The file was only read, so a failure to close it loses nothing.
        try? handle.close()
        var (section, values): (String?, [String: String]) = (nil, [:])
        for line in String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                section = line.dropFirst().dropLast().trimmingCharacters(in: .whitespaces)
            } else if section == profile, let equals = line.firstIndex(of: "=") {
                let name = line[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
                values[name] = line[line.index(after: equals)...].trimmingCharacters(in: .whitespaces)
            }
        }
        guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"], !id.isEmpty, !secret.isEmpty
        else {
            throw CloudError(
                .invalidArguments,
                "\(url.path) has no aws_access_key_id and aws_secret_access_key in the profile '\(profile.prefix(100))'")
        }
        return Keys(id: id, secret: secret, token: values["aws_session_token"])
    }
}
