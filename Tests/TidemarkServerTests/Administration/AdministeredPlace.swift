import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkServer

@testable import TidemarkIdentity

/// A place where a cloud is stored and administered: the options that name it to the tool, and the cloud as a test opens it.
enum AdministeredPlace: Sendable {
    case directory(URL)
    /// A database, and the directory with the contents of assets.
    case database(address: String, assets: URL)

    /// The options that name the place.
    var options: [String] {
        switch self {
        case .directory(let directory): ["--data", directory.path]
        case .database(let address, let assets): ["--database", address, "--assets", assets.path]
        }
    }

    /// The directory that has the contents of assets.
    private var root: URL {
        switch self {
        case .directory(let directory): directory
        case .database(_, let assets): assets
        }
    }

    /// Opens the cloud of the place, and closes it.
    private func withCloud(_ body: (EmbeddedCloud, CredentialStore) async throws -> Void) async throws {
        switch self {
        case .directory(let directory):
            try await body(EmbeddedCloud(at: directory), CredentialStore(at: directory))
        case .database(let address, let assets):
            let opened = try await OpenedDatabase(
                ServerConfiguration.Database(address: address, assets: .directory(assets)), makes: false)
            do {
                let (cloud, credentials) = try opened.administered()
                try await body(cloud, credentials)
            } catch {
                await opened.close()
                throw error
            }
            await opened.close()
        }
    }
}

/// A change that servers and people make, and no command makes. All concern anna@example.org and the container `journal`.
enum AdminChange: Sendable {
    /// The account gets a second factor with two recovery codes.
    case secondFactor
    /// An identity of a provider is connected with the account.
    case identity
    /// A device signs in.
    case session
    /// A server refuses a record that the device sends.
    case refusal
    /// The account gets the zone `Trips` with three records, one of them with a picture, and shares it with ben@example.org by a link.
    case trips
    /// The content of the picture is lost.
    case loss
    /// The lost content is put back.
    case putBack
}

extension AdministeredPlace {
    private static let container = "journal"
    private static let zone = CloudZoneID("Trips")
    private static let picture = Picture.png(1)
    /// A suffix of the path of a lost content.
    private static let lost = "-lost"

    /// Makes a change.
    func make(_ change: AdminChange) async throws {
        switch change {
        case .loss:
            let content = try content()
            try FileManager.default.moveItem(atPath: content, toPath: content + Self.lost)
            return
        case .putBack:
            let content = try content()
            try #require(content.hasSuffix(Self.lost))
            try FileManager.default.moveItem(atPath: content, toPath: String(content.dropLast(Self.lost.count)))
            return
        case .secondFactor, .identity, .session, .refusal, .trips: break
        }
        try await withCloud { cloud, credentials in
            let anna = try #require(try await cloud.account("anna@example.org")).id
            switch change {
            case .secondFactor:
                let factor = StoredSecondFactor(
                    account: anna, secret: [UInt8](repeating: 7, count: 20), recovery: [UInt8](repeating: 1, count: 64), step: 0,
                    added: Timestamp.now())
                try await credentials.storage.setSecondFactor(factor, of: anna)
            case .identity:
                let key = IdentityKey(issuer: "https://id.example.org", subject: "anna-1")
                #expect(try await credentials.connect(key, label: "anna@example.net", to: anna) == .connected)
            case .session: _ = try await Self.signIn(anna, credentials)
            case .refusal: try await credentials.record([Self.refusal(of: anna, at: Self.signIn(anna, credentials))])
            case .trips: try await Self.addTrips(to: cloud, anna)
            case .loss, .putBack: break
            }
        }
    }

    /// Signs a device in, and returns the identifier of the session.
    private static func signIn(_ account: String, _ credentials: CredentialStore) async throws -> String {
        try await credentials.makeSession(
            account: account, container: container, environment: .development, kind: .device, device: "laptop",
            system: "Debian GNU/Linux 12", address: "192.0.2.7"
        ).session.id
    }

    /// A refused record, an hour ago. Its time has six decimals, because the width of a column depends on them.
    private static func refusal(of account: String, at session: String) -> SyncFailure {
        let second: Int64 = 1_000_000
        var failure = SyncFailure(
            at: (Timestamp.now() / second - 3_600) * second + 123_456, operation: "records.modify", container: container,
            environment: "development", account: account, scope: .private, record: "senja", recordType: "Trip", zone: "Trips",
            code: "BAD_REQUEST", reason: "Invalid value for 'days'")
        failure.sender = session
        return failure
    }

    private static func addTrips(to cloud: EmbeddedCloud, _ account: String) async throws {
        try await cloud.open(container, environment: .development)
        let database = try cloud.database(.private, of: container, account: account)
        try await database.modifyZones(saving: [zone], deleting: [])
        let asset = AssetDigest.asset(of: picture)
        #expect(try await database.upload(picture, of: asset, at: 0, in: zone) == asset.size)
        let operations = [("senja", "Senja"), ("odda", "Odda"), ("svolvaer", "Svolvær")].map { name, title in
            var record = CloudRecord(CloudRecordID(name, in: zone), type: "Trip", fields: ["title": .string(title)])
            record.fields["days"] = .int64(Int64(title.count))
            if name == "senja" { record.fields["image"] = .asset(asset) }
            return RecordOperation(.create, record)
        }
        for outcome in try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations)) {
            guard case .saved = outcome else { throw CloudError(.internalError, "\(outcome)") }
        }
        let share = try await database.createShare(in: zone, coverage: .zone, title: "Summer trip", publicPermission: .none)
        let ben = UserLookUp.emailAddress("ben@example.org")
        let invited = try await database.changeShare(share.id, [.invite(ben, role: .privateUser, permission: .readWrite)])
        let participant = try #require(invited.participants.first { $0.identity.lookUp == ben })
        _ = try await database.makeLink(to: share.id, for: participant.id)
    }

    /// The path of the content of the picture, lost or not.
    private func content() throws -> String {
        let digest = AssetDigest.asset(of: Self.picture).digest
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { path in
            path.split(separator: "/").last?.hasPrefix(digest) == true
        }
        try #require(paths.count == 1, "\(paths)")
        return root.appendingPathComponent(paths[0]).path
    }
}
