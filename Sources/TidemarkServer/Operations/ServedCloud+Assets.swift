import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import TidemarkAccess
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Assets as the protocol has them: addresses to send a content to, and to fetch one from.
extension ServedCloud {
    /// Says where contents can be sent to.
    func prepareUploads(_ call: Call) async throws -> Reply {
        struct Wanted {
            let record: String
            let type: String
            let field: String
        }
        let (zone, wanted) = try call.read { node throws(CloudError) in
            var wanted: [Wanted] = []
            for node in try node.required("tokens").asArray(most: Self.limits.operationsPerRequest) {
                wanted.append(
                    Wanted(
                        record: try node.string("recordName") ?? UUID().uuidString.lowercased(),
                        type: try node.string("recordType") ?? "", field: try node.required("fieldName").asString()))
            }
            return (try CloudZoneID(ofRequest: node), wanted)
        }
        guard call.caller.account != nil else { throw CloudError(.notAuthenticated, "request needs authorization") }
        // A zone that is not there is told now, and not when a content has come.
        let database = try database(call)
        if !zone.isDefault { _ = try await database.lookup([], in: zone, desiredKeys: []) }
        let expires = Self.now + AssetPass.uploadAge
        return .object {
            $0.list("tokens") { json in
                for wanted in wanted {
                    let pass = AssetPass(
                        container: call.container, environment: call.environment, scope: call.scope ?? .private, zone: zone,
                        account: call.caller.account, recordType: wanted.type, fieldName: wanted.field)
                    json.object {
                        $0.member("recordName", wanted.record)
                        $0.member("fieldName", wanted.field)
                        $0.member(
                            "url", call.baseURL + "/assets/upload/" + access.seal(pass.data, for: AssetPass.upload, until: expires))
                    }
                }
            }
        }
    }

    /// Takes in a content, whatever its length: raw, or as the one part of a form.
    func upload(_ call: Call) async throws -> Reply {
        guard let pass = access.open(call.parameters["capability"] ?? "", for: AssetPass.upload).flatMap(AssetPass.init) else {
            throw CloudError(.permissionFailure, "the address is altered or has expired: ask assets/upload for another one")
        }
        let database = try database(pass)
        guard let stream = call.stream else { throw CloudError(.invalidArguments, "there is no content") }
        let most = try await database.limits().bytesPerAsset
        if let text = call.headers[.contentLength], let length = Int64(text), length > most + 65_536 { throw Self.tooLarge(most) }

        let file = incoming.appendingPathComponent(UUID().uuidString.lowercased())
        defer { unlink(file.path) }
        let asset = try await receive(stream, type: call.headers[.contentType], most: most, into: file)
        try await adopt(file, asset, pass.zone, database)
        var receipt = pass
        receipt.asset = asset
        let text = access.seal(receipt.data, for: AssetPass.receipt, until: Self.now + AssetPass.receiptAge)
        return .object {
            $0.member("singleFile") {
                asset.write(&$0, dialect(call))
                $0.member("receipt", text)
            }
        }
    }

    private static func tooLarge(_ most: Int64) -> CloudError {
        CloudError(.quotaExceeded, "an asset has \(most) bytes at the most")
    }

    private func database(_ pass: AssetPass) throws(CloudError) -> EmbeddedDatabase {
        try cloud.database(pass.scope, of: pass.container, environment: pass.environment, account: pass.account)
    }

    private func receive(_ stream: RequestBody, type: String?, most: Int64, into file: URL) async throws -> CloudAsset {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw CloudError(.internalError, "cannot take in the content: \(String(cString: strerror(errno)))") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var digest = AssetDigest()
        var count: Int64 = 0
        var form = try MultipartBody(contentType: type)
        for try await buffer in stream {
            var bytes = Array(buffer.readableBytesView)
            if form != nil { bytes = try form!.read(bytes) }
            count += Int64(bytes.count)
            guard count <= most else { throw Self.tooLarge(most) }
            digest.update(bytes)
            do {
                try handle.write(contentsOf: bytes)
            } catch {
                throw CloudError(.quotaExceeded, "the server has no room for the content")
            }
        }
        try form?.finish()
        return digest.finish()
    }

    /// Gives the cloud a content that has come whole.
    private func adopt(
        _ file: URL, _ asset: CloudAsset, _ zone: CloudZoneID, _ database: EmbeddedDatabase
    ) async throws {
        var offset = try await database.missingAssets([asset], in: zone)[asset]
        guard let begun = offset else { return }
        let most = try await database.limits().bytesPerAssetPiece
        let handle = try FileHandle(forReadingFrom: file)
        try handle.seek(toOffset: UInt64(begun))
        repeat {
            let piece = try handle.read(upToCount: most) ?? Data()
            let received = try await database.upload(piece, of: asset, at: offset ?? 0, in: zone)
            guard received > offset ?? 0 || received == asset.size else { break }
            offset = received
        } while offset ?? 0 < asset.size
    }

    /// Sends a content, or a part of it.
    func download(_ call: Call) async throws -> Reply {
        guard let pass = access.open(call.parameters["capability"] ?? "", for: AssetPass.download).flatMap(AssetPass.init),
            let asset = pass.asset
        else { throw CloudError(.unknownItem, "the address is altered or has expired: fetch the record again") }
        return try await send(asset, pass.zone, try database(pass), call)
    }

    /// Assets that records name, to be named by others without being sent again.
    func rereference(_ call: Call) async throws -> Reply {
        let (zone, wanted) = try call.read { node throws(CloudError) in
            var wanted: [(record: String, field: String)] = []
            for node in try node.required("assets").asArray(most: Self.limits.operationsPerRequest) {
                wanted.append((try node.required("recordName").asString(), try node.required("fieldName").asString()))
            }
            return (try CloudZoneID(ofRequest: node), wanted)
        }
        let found = try await database(call).lookup(wanted.map(\.record), in: zone, desiredKeys: Set(wanted.map(\.field)))
        let dialect = dialect(call)
        let expires = Self.now + AssetPass.receiptAge
        return .object {
            $0.list("assets") { json in
                for (wanted, found) in zip(wanted, found) {
                    json.object {
                        guard case .success(let record) = found, case .asset(let asset)? = record.fields[wanted.field] else {
                            $0.member("recordName", wanted.record)
                            CloudError(.unknownItem, "the record has no asset '\(wanted.field)'").writeMembers(&$0, dialect)
                            return
                        }
                        let pass = AssetPass(
                            container: call.container, environment: call.environment, scope: call.scope ?? .private, zone: zone,
                            account: call.caller.account, asset: asset, fieldName: wanted.field)
                        asset.write(&$0, dialect)
                        $0.member("receipt", access.seal(pass.data, for: AssetPass.receipt, until: expires))
                    }
                }
            }
        }
    }

    // Assets by their digests, as our own clients have them

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

    /// What the path and the query say: `<digest>-<size>`, `zone`, `owner`.
    private func named(_ call: Call) throws(CloudError) -> (asset: CloudAsset, zone: CloudZoneID) {
        let parts = (call.parameters["asset"] ?? "").split(separator: "-")
        guard parts.count == 2, let size = Int64(parts[1]), size >= 0 else {
            throw CloudError(.invalidArguments, "the path names no asset: <SHA-256 in hexadecimal digits>-<bytes> was expected")
        }
        guard let zone = call.query["zone"] else { throw CloudError(.invalidArguments, "the query lacks 'zone'") }
        return (
            CloudAsset(digest: String(parts[0]), size: size), CloudZoneID(zone, owner: call.query["owner"] ?? CloudZoneID.defaultOwner)
        )
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

    func getAsset(_ call: Call) async throws -> Reply {
        let (asset, zone) = try named(call)
        return try await send(asset, zone, try database(call), call)
    }

    /// Bytes that are read at once.
    private static let piece = 1 << 20

    private func send(_ asset: CloudAsset, _ zone: CloudZoneID, _ database: EmbeddedDatabase, _ call: Call) async throws -> Reply {
        let tag = "\"\(asset.digest)\""
        var reply = Reply(body: .none)
        reply.headers[.eTag] = tag
        reply.headers[.acceptRanges] = "bytes"
        reply.headers[.contentDisposition] = "attachment"
        reply.headers[.cacheControl] = "private, max-age=3600, immutable"
        var range: Range<Int64> = 0..<asset.size
        // With the tag of another content, the range is none of this one's.
        if let text = call.headers[.range], call.headers[.ifRange].map({ $0 == tag }) ?? true {
            switch ByteRange(text, of: asset.size) {
            case .all: break
            case .part(let part):
                range = part
                reply.status = .partialContent
                reply.headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(asset.size)"
            case .none:
                reply.status = .rangeNotSatisfiable
                reply.headers[.contentRange] = "bytes */\(asset.size)"
                return reply
            }
        }
        // Whoever may not have it is told so before anything is sent.
        let first = try await database.download(
            asset, in: zone, from: range.lowerBound, count: min(Self.piece, Int(range.upperBound - range.lowerBound)))
        guard first.count == min(Self.piece, Int(range.upperBound - range.lowerBound)) else {
            throw CloudError(.assetNotAvailable, "the asset \(asset.digest) is not \(asset.size) bytes long")
        }
        if call.headers[.ifNoneMatch] == tag {
            reply.status = .notModified
            return reply
        }
        let whole = range
        reply.body = .stream(type: "application/octet-stream", count: whole.upperBound - whole.lowerBound) { writer in
            try await writer.write(ByteBuffer(bytes: first))
            var offset = whole.lowerBound + Int64(first.count)
            while offset < whole.upperBound {
                let piece = try await database.download(
                    asset, in: zone, from: offset, count: min(Self.piece, Int(whole.upperBound - offset)))
                guard !piece.isEmpty else { throw CloudError(.assetNotAvailable, "the asset \(asset.digest) ends early") }
                try await writer.write(ByteBuffer(bytes: piece))
                offset += Int64(piece.count)
            }
        }
        return reply
    }
}
