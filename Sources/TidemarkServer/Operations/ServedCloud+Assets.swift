import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// Assets in the protocol: addresses for uploads, and receipts.
extension ServedCloud {
    /// Returns the addresses to which contents can be sent.
    func prepareUploads(_ call: Call) async throws -> Reply {
        struct Wanted {
            let record: String
            let type: String
            let field: String
        }
        let (asked, wanted) = try call.read { node throws(CloudError) in
            var wanted: [Wanted] = []
            for node in try node.required("tokens").asArray(most: Self.limits.operationsPerRequest) {
                wanted.append(
                    Wanted(
                        record: try Self.name(node, "recordName") ?? UUID().uuidString.lowercased(),
                        type: try Self.name(node, "recordType") ?? "", field: try Self.requiredName(node, "fieldName")))
            }
            return (try Self.zone(node), wanted)
        }
        guard call.caller.account != nil else { throw CloudError(.notAuthenticated, "request needs authorization") }
        // A missing zone is reported now, and not only when a content has arrived.
        let zone = try await known(asked, try await database(call))
        let expires = Self.now + SignedAssetToken.uploadAge
        return .object {
            $0.list("tokens") { json in
                for wanted in wanted {
                    let pass = SignedAssetToken(
                        container: call.container, environment: call.environment, scope: call.scope ?? .private, zone: zone,
                        account: call.caller.account, recordType: wanted.type, fieldName: wanted.field,
                        credential: call.caller.credential,
                        id: String(UInt64.random(in: .min ... .max), radix: 36))
                    json.object {
                        $0.member("recordName", wanted.record)
                        $0.member("fieldName", wanted.field)
                        let text = access.signedText(pass.data, for: SignedAssetToken.upload, until: expires)
                        $0.member("url", call.baseURL + "/assets/upload/" + text)
                    }
                }
            }
        }
    }

    // Texts in signed addresses are short.

    private static let nameMost = 255

    private static func name(_ node: JSONNode, _ member: StaticString) throws(CloudError) -> String? {
        guard let node = node[member] else { return nil }
        let name = try node.asString()
        guard name.utf8.count <= nameMost else { throw node.refusal("has more than \(nameMost) bytes") }
        return name
    }

    private static func requiredName(_ node: JSONNode, _ member: StaticString) throws(CloudError) -> String {
        _ = try node.required(member)
        return try name(node, member) ?? ""
    }

    private static func zone(_ node: JSONNode) throws(CloudError) -> CloudZoneID {
        if let zone = node["zoneID"], zone.isObject {
            _ = try name(zone, "zoneName")
            _ = try name(zone, "ownerRecordName")
        }
        return try CloudZoneID(ofRequest: node)
    }

    /// Returns a zone as the cloud names it. The zone has to exist, and to be visible to the caller.
    private func known(_ zone: CloudZoneID, _ database: EmbeddedDatabase) async throws(CloudError) -> CloudZoneID {
        _ = try await database.lookup([], in: zone, desiredKeys: [])
        guard database.scope != .shared else { return zone }
        guard zone.ownerName == CloudZoneID.defaultOwner || zone.ownerName == database.user else {
            throw CloudError(.zoneNotFound, "Zone '\(zone.zoneName)' does not exist")
        }
        return CloudZoneID(zone.zoneName)
    }

    /// Stores a content of any length: a raw body, or the only part of a form.
    func upload(_ call: Call) async throws -> Reply {
        try await access.refresh()
        guard
            let pass = try access.open(call.parameters["capability"] ?? "", for: SignedAssetToken.upload).flatMap(
                SignedAssetToken.init),
            let account = pass.account
        else { throw CloudError(.permissionFailure, "the address is altered or has expired: ask assets/upload for another one") }
        guard let stream = call.stream else { throw CloudError(.invalidArguments, "there is no content") }
        let form = try MultipartBody(contentType: call.headers[.contentType])
        let length = try Self.length(call.headers, isForm: form != nil)
        let database = try await database(pass)
        let most = try await database.limits().bytesPerAsset
        if let length, length > most + MultipartBody.frame { throw AssetUpload.tooLarge(most) }

        let running = RunningUpload(folder: incoming, account: account, address: pass.id)
        try running.begin()
        defer { running.end() }
        // The quota is checked before anything is written to the disk.
        let room = try await database.room(in: pass.zone)
        if let length, length - (form == nil ? 0 : MultipartBody.frame) > room { throw AssetUpload.noRoom(for: "\(length)") }
        let upload = AssetUpload(
            incoming.appendingPathComponent(UUID().uuidString.lowercased()), form: form, most: most, room: room)
        let asset: CloudAsset
        do {
            asset = try await receive(stream, length, upload)
            try await database.adopt(upload.file, asset, in: pass.zone)
        } catch {
            await upload.remove()
            throw error
        }
        await upload.remove()
        var receipt = pass
        receipt.asset = asset
        receipt.id = ""
        let text = access.signedText(receipt.data, for: SignedAssetToken.receipt, until: Self.now + SignedAssetToken.receiptAge)
        return .object {
            $0.member("singleFile") {
                asset.write(&$0, dialect(call))
                $0.member("receipt", text)
            }
        }
    }

    /// Returns the number of bytes that a request announces; `nil` where it announces none, and the form has an end of its own.
    private static func length(_ headers: HTTPFields, isForm: Bool) throws -> Int64? {
        if let coding = headers[.contentEncoding]?.lowercased(), !coding.isEmpty, coding != "identity" {
            var refusal = Refusal.badRequest("a content is sent as it is: leave out Content-Encoding")
            refusal.status = .unsupportedMediaType
            refusal.headers[.acceptEncoding] = "identity"
            throw refusal
        }
        if let length = headers[.contentLength].flatMap({ Int64($0) }), length >= 0 { return length }
        guard isForm else {
            // Without an announced length, a broken connection looks like the end of the content.
            var refusal = Refusal.badRequest("a content that is no part of a form is sent with Content-Length, and not in chunks")
            refusal.status = .lengthRequired
            throw refusal
        }
        return nil
    }

    /// Returns the database of an address. Its container must be served, and the credential that the address was made for must
    /// still be valid.
    func database(_ pass: SignedAssetToken) async throws -> EmbeddedDatabase {
        guard try await access.isGood(pass.credential) else {
            throw CloudError(
                .permissionFailure, "the session for which the address was given out has ended: sign in, and ask for another one")
        }
        guard try access.hasContainer(pass.container) else {
            throw CloudError(.unknownItem, "the container '\(pass.container)' is not served any more")
        }
        try await cloud.open(pass.container, environment: pass.environment)
        return try cloud.database(pass.scope, of: pass.container, environment: pass.environment, account: pass.account)
    }

    private func receive(_ stream: RequestBody, _ length: Int64?, _ upload: AssetUpload) async throws -> CloudAsset {
        try await upload.begin()
        var count: Int64 = 0
        for try await buffer in stream {
            count += Int64(buffer.readableBytes)
            try await upload.take(buffer)
        }
        // A client whose connection broke off gets no answer.
        if let length, count != length { throw BodyFailure(cause: CloudResponder.ConnectionAborted()) }
        return try await upload.finish()
    }

    /// Makes receipts for assets that records name, so that other records can name them without another upload.
    func rereference(_ call: Call) async throws -> Reply {
        let (asked, wanted) = try call.read { node throws(CloudError) in
            var wanted: [(record: String, field: String)] = []
            for node in try node.required("assets").asArray(most: Self.limits.operationsPerRequest) {
                wanted.append((try Self.requiredName(node, "recordName"), try Self.requiredName(node, "fieldName")))
            }
            return (try Self.zone(node), wanted)
        }
        let database = try await database(call)
        let zone = try await known(asked, database)
        let found = try await database.lookup(wanted.map(\.record), in: zone, desiredKeys: Set(wanted.map(\.field)))
        var named: Set<CloudAsset> = []
        for (wanted, found) in zip(wanted, found) {
            if case .success(let record) = found, case .asset(let asset)? = record.fields[wanted.field] { named.insert(asset) }
        }
        // A receipt needs a content that exists, since no bytes are sent with it.
        let missing = try await database.missingAssets(Array(named), in: zone)
        let dialect = dialect(call)
        let expires = Self.now + SignedAssetToken.receiptAge
        return .object {
            $0.list("assets") { json in
                for (wanted, found) in zip(wanted, found) {
                    json.object {
                        guard case .success(let record) = found, case .asset(let asset)? = record.fields[wanted.field] else {
                            $0.member("recordName", wanted.record)
                            CloudError(.unknownItem, "the record has no asset '\(wanted.field)'").writeMembers(&$0, dialect)
                            return
                        }
                        guard missing[asset] == nil else {
                            $0.member("recordName", wanted.record)
                            CloudError(
                                .assetNotAvailable,
                                "the content of '\(wanted.field)' is missing in the cloud: upload it again with assets/upload"
                            ).writeMembers(&$0, dialect)
                            return
                        }
                        let pass = SignedAssetToken(
                            container: call.container, environment: call.environment, scope: call.scope ?? .private, zone: zone,
                            account: call.caller.account, asset: asset, fieldName: wanted.field)
                        asset.write(&$0, dialect)
                        $0.member("receipt", access.signedText(pass.data, for: SignedAssetToken.receipt, until: expires))
                    }
                }
            }
        }
    }

    // Assets by their digests, for Tidemark's own clients

    func missingAssets(_ call: Call) async throws -> Reply {
        let (zone, assets) = try call.read { node throws(CloudError) in
            var assets: [CloudAsset] = []
            for node in try node.required("assets").asArray(most: Self.limits.operationsPerRequest) {
                assets.append(
                    CloudAsset(digest: try node.required("digest").asString(), size: try node.required("size").asInteger()))
            }
            return (try CloudZoneID(ofRequest: node), assets)
        }
        let missing = try await database(call).missingAssets(assets, in: zone)
        return .object {
            $0.list("assets") { json in
                for (asset, received) in missing {
                    json.object {
                        $0.member("digest", asset.digest)
                        $0.member("size", asset.size)
                        $0.member("received", received)
                    }
                }
            }
        }
    }

    /// The most bytes of any content. JSON has numbers up to this one in all their digits.
    private static let sizeMost: Int64 = 1 << 53

    /// Reads the path and the query: `<digest>-<size>`, `zone`, `owner`.
    func named(_ call: Call) throws(CloudError) -> (asset: CloudAsset, zone: CloudZoneID) {
        let parts = (call.parameters["asset"] ?? "").split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, Hexadecimal.isText(parts[0], ofBytes: 32),
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let size = Int64(parts[1]), size <= Self.sizeMost
        else {
            throw CloudError(.invalidArguments, "the path names no asset: <SHA-256 in hexadecimal digits>-<bytes> was expected")
        }
        guard let zone = call.query["zone"] else { throw CloudError(.invalidArguments, "the query lacks 'zone'") }
        let owner = call.query["owner"] ?? CloudZoneID.defaultOwner
        return (CloudAsset(digest: String(parts[0]), size: size), CloudZoneID(zone, owner: owner))
    }

    func putPiece(_ call: Call) async throws -> Reply {
        let (asset, zone) = try named(call)
        guard let offset = Int64(call.query["offset"] ?? "0"), offset >= 0 else {
            throw CloudError(.invalidArguments, "the query's 'offset' is no number of bytes")
        }
        let piece = call.body.withUnsafeBufferPointer { Data(buffer: $0) }
        let received = try await database(call).upload(piece, of: asset, at: offset, in: zone)
        return .object { $0.member("received", received) }
    }
}
