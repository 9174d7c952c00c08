import Foundation
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkPostgres

/// A kind of request, of which tests send many, each with a number of its own.
struct HostileRequest: Sendable {
    let name: String
    /// The least number of pieces that a request sends to the database.
    let leastPieces: Int
    /// Whether the server finds out what has become of a request whose answer is lost. Otherwise the client gets an error of an
    /// unknown outcome, and sends the request again.
    let isSettledByServer: Bool
    /// Makes what requests of the kind need.
    let prepare: @Sendable (HostileSide) async throws -> Void
    /// Sends a request, and returns the answer in words that are the same in each cloud.
    let send: @Sendable (_ side: HostileSide, _ number: Int, _ isSentAgain: Bool) async throws -> String

    /// Sends a request as a client does: again, if its outcome is unknown.
    func run(_ number: Int, on side: HostileSide) async throws -> (answer: String, isSentAgain: Bool) {
        do {
            return (try await send(side, number, false), false)
        } catch let error as CloudError where error.code == .networkFailure && error.retryAfter != nil {
            // The error asks for that.
        } catch let error as CredentialError where error.code == .busy {
            // A person who signs in tries again.
        }
        return (try await send(side, number, true), true)
    }

    /// The most requests of one kind that a test sends.
    static let most = 50

    static let all = [save, lookUp, query, changes, share, deletion, upload, notification, signIn, session]

    // Records

    static let save = HostileRequest(name: "saves a batch", leastPieces: 3, isSettledByServer: true) { side in
        try await side.fill(CloudZoneID("Saves"), [])
    } send: { side, number, _ in
        let names = (0..<3).map { "\(number) \($0)" }
        let outcomes = try await side.save(names, in: CloudZoneID("Saves"), token: "save \(number)")
        return try outcomes.map { try side.words($0) }.joined(separator: "; ")
    }

    static let lookUp = HostileRequest(name: "looks records up", leastPieces: 2, isSettledByServer: true) { side in
        try await side.fill(CloudZoneID("Look-ups"), (0..<most).map { "record \($0)" })
    } send: { side, number, _ in
        let found = try await side.own.lookup(
            ["record \(number)", "none", "record \(number + 1)"], in: CloudZoneID("Look-ups"), desiredKeys: nil)
        return try found.map { result in
            switch result {
            case .success(let record): try side.words(record)
            case .failure(let error): error.code.rawValue
            }
        }.joined(separator: "; ")
    }

    static let query = HostileRequest(name: "asks for records", leastPieces: 2, isSettledByServer: true) { side in
        try await side.fill(CloudZoneID("Queries"), (0..<most).map { "record \($0)" })
        for field in ["n", "recordName"] {
            let indexes: Set<CloudSchema.Index> = field == "n" ? [.queryable, .sortable] : [.queryable]
            try await side.cloud.setIndexes(indexes, of: field, in: "Note", container: HostileSide.container)
        }
    } send: { side, number, _ in
        let query = CloudQuery(
            recordType: "Note", filters: [.init(.field("n"), .greaterThanOrEquals, .int64(Int64(number)))],
            sorts: [.init(.field("n"))])
        let page = try await side.own.query(
            query, in: CloudZoneID("Queries"), limit: 5, desiredKeys: nil, continuation: nil)
        return "\(try page.records.map { try side.words($0) }) \(page.continuation == nil)"
    }

    static let changes = HostileRequest(name: "fetches a page of changes", leastPieces: 2, isSettledByServer: true) { side in
        try await side.fill(CloudZoneID("Changes"), (0..<most).map { "record \($0)" })
    } send: { side, number, _ in
        let page = try await side.own.zoneChanges(
            CloudZoneID("Changes"), since: nil, limit: 1 + number, desiredKeys: nil)
        return "\(try side.words(page.changes)) \(page.moreComing)"
    }

    static let share = HostileRequest(name: "shares a record", leastPieces: 3, isSettledByServer: false) { side in
        try await side.fill(CloudZoneID("Shares"), (0..<most).map { "root \($0)" })
    } send: { side, number, isSentAgain in
        let (zone, title) = (CloudZoneID("Shares"), "share \(number)")
        var made: [CloudShare]
        do {
            made = [
                try await side.own.createShare(
                    in: zone, coverage: .hierarchy(root: "root \(number)"), title: title, publicPermission: .readOnly)
            ]
        } catch let error as CloudError where isSentAgain && error.code == .alreadyShared {
            // The first attempt has made the share. All shares are read, of which there are more each time.
            made = try await side.own.shares(in: zone).filter { $0.title == title }
        }
        return "\(made.map { "\($0.coverage) \($0.publicPermission) \($0.participants.count)" })"
    }

    static let deletion = HostileRequest(name: "deletes records", leastPieces: 3, isSettledByServer: true) { side in
        try await side.fill(CloudZoneID("Deletions"), (0..<most).flatMap { ["first \($0)", "second \($0)"] })
    } send: { side, number, _ in
        let zone = CloudZoneID("Deletions")
        let operations = ["first \(number)", "second \(number)"].map { name in
            RecordOperation(.forceDelete, CloudRecord(CloudRecordID(name, in: zone), type: "Note"))
        }
        let request = ModifyRecordsRequest(zone: zone, operations: operations, clientToken: "deletion \(number)")
        return try await side.own.modify(request).map { try side.words($0) }.joined(separator: "; ")
    }

    // Contents

    /// A content in two pieces. A device asks how much of it the cloud has, and goes on from there.
    static let upload = HostileRequest(name: "uploads a content", leastPieces: 4, isSettledByServer: false) { side in
        try await side.fill(CloudZoneID("Uploads"), [])
    } send: { side, number, _ in
        let zone = CloudZoneID("Uploads")
        let content = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0 * 7 + number) })
        let asset = AssetDigest.asset(of: content)
        for _ in 0..<5 {
            guard let received = try await side.own.missingAssets([asset], in: zone)[asset] else { break }
            let piece = Data(content.dropFirst(Int(received)).prefix(500))
            _ = try await side.own.upload(piece, of: asset, at: received, in: zone)
        }
        let missing = try await side.own.missingAssets([asset], in: zone)
        return "\(asset.digest) missing: \(missing.count), room: \(try await side.own.account().used ?? -1)"
    }

    // Notifications

    /// A notification is a hint: one whose answer is lost is gone, and none comes twice.
    static let notification = HostileRequest(name: "fetches a notification", leastPieces: 3, isSettledByServer: false) { _ in
    } send: { side, number, isSentAgain in
        let (box, frame) = (NotificationBox(account: side.account.id, token: "device"), [UInt8(number)])
        var (isThere, taken): (Bool, [UInt8]?) = (true, nil)
        if isSentAgain {
            isThere = try await waiting(side) > 0
        } else {
            // A notification that is put back is durable. A new one may be lost when the database restarts.
            try await side.directNotifications.putBack(frame, for: box)
        }
        // A wait that a restart has ended returns none, and the device waits again.
        for _ in 0..<5 where isThere && taken == nil { taken = try await side.notifications.take(for: box) }
        #expect(taken == (isThere ? frame : nil))
        #expect(try await waiting(side) == 0)
        return "\(frame)"
    }

    /// Returns how many notifications wait. It waits for a transaction that has lost its client and still locks one.
    private static func waiting(_ side: HostileSide) async throws -> Int {
        try await side.direct.transaction { try $0.query("SELECT FROM notifications FOR UPDATE").count }
    }

    // Credentials

    static let signIn = HostileRequest(name: "signs in", leastPieces: 3, isSettledByServer: false) { _ in
    } send: { side, number, _ in
        let result = try await side.credentials.signIn(
            HostileSide.password, account: side.account.id, container: HostileSide.container, kind: .device,
            device: "device \(number)")
        let token = try #require(result.grant)
        let session = try await side.directCredentials.session(token.text).get()
        return "\(session.account == side.account.id) \(session.device)"
    }

    static let session = HostileRequest(name: "looks a session up", leastPieces: 1, isSettledByServer: true) { _ in
    } send: { side, _, _ in
        let session = try await side.credentials.session(side.session.text).get()
        return "\(session.account) \(session.id == side.session.session.id)"
    }
}
