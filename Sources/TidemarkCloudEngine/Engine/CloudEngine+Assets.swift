package import Foundation
package import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// What of some assets is missing, and how far each has got.
    package func missingAssets(
        _ assets: [CloudAsset], in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> [CloudAsset: Int64] {
        guard assets.count <= limits.operationsPerRequest else {
            throw CloudError(.limitExceeded, "a request asks for \(limits.operationsPerRequest) assets at the most")
        }
        for asset in assets { try asset.check() }
        let owner = try place(id, caller).owner
        let there = try await storage.read { rows throws(CloudError) in
            let digests = Set(assets.map(\.digest))
            guard caller.scope == .shared else { return try rows.assets(digests, owner: owner) }
            return try self.assets(digests, for: try access(to: id, caller, rows), rows)
        }
        let gone = try await keep(assets.filter { there[$0.digest] == $0.size }, owner: owner, assetStorage)
        var missing: [CloudAsset: Int64] = [:]
        for asset in assets where there[asset.digest] != asset.size || gone.contains(asset.digest) {
            missing[asset] = try await assetStorage.received(asset, owner: owner, by: uploader(caller))
        }
        return missing
    }

    /// Who puts something on the way to an asset storage that is not theirs alone: what others have begun is not theirs to go on with.
    private func uploader(_ caller: Caller) -> String? { caller.scope == .private ? nil : caller.user }

    /// Which of some assets there are that records of the caller may name, with their sizes: their own; of somebody else's, those that they
    /// have uploaded themselves, and those that records name which they may read.
    func assets(
        _ digests: Set<String>, for access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) -> [String: Int64] {
        let owner = access.zone.place.owner
        guard access.isShared else { return try rows.assets(digests, owner: owner) }
        let uploaded = try rows.uploads(digests, owner: owner, by: access.caller.user)
        let named = try rows.named(digests.subtracting(uploaded), in: access.zone.id, shares: access.shares)
        return try rows.assets(uploaded.union(named), owner: owner)
    }

    package func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in id: CloudZoneID, _ assetStorage: any AssetStorage,
        _ caller: Caller
    ) async throws(CloudError) -> Int64 {
        let owner = try place(id, caller).owner
        guard piece.count <= limits.bytesPerAssetPiece else {
            throw CloudError(.limitExceeded, "a piece has \(limits.bytesPerAssetPiece) bytes at the most, not \(piece.count)")
        }
        let need = try await need(of: asset, in: id, assetStorage, caller)
        guard need != .nothing else { return asset.size }
        // What does not come at once takes its room before anything of it lies there.
        if need == .room, Int64(piece.count) < asset.size { try await reserve(asset, in: id, assetStorage, caller) }
        let (received, isWhole) = try await assetStorage.add(piece, to: asset, at: offset, owner: owner, by: uploader(caller))
        guard isWhole else { return received }
        try await count(asset, in: id, assetStorage, caller)
        return received
    }

    /// Takes in a content that has come whole and that the caller has hashed: its file moves onto the asset storage, in one step.
    package func adopt(
        _ file: URL, _ asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) {
        guard try await need(of: asset, in: id, assetStorage, caller) != .nothing else { return }
        try await assetStorage.adopt(file, as: asset, owner: try place(id, caller).owner)
        try await count(asset, in: id, assetStorage, caller)
    }

    /// Bytes that the caller may still send.
    package func room(in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller) async throws(CloudError) -> Int64 {
        let payer = payer(try place(id, caller), caller)
        return try await storage.read { rows throws(CloudError) in
            if caller.scope == .shared { try access(to: id, caller, rows).demandWriting() }
            return max(0, caller.quota - (try rows.used(by: payer)) - (try rows.reserved(by: payer).bytes))
        }
    }

    /// What an asset needs that a caller wants to send.
    private enum Need {
        /// It is there.
        case nothing
        /// Its content alone: the rows name it, and its bytes are missing. They count already.
        case content
        /// Its content, and room for it.
        case room
    }

    /// What an asset needs. Unless it is there, the caller may send it, and there is room.
    private func need(
        of asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> Need {
        do throws(CloudError) {
            return try await needNow(of: asset, in: id, assetStorage, caller)
        } catch {
            // What nobody has gone on with for a week makes room.
            guard error.code == .quotaExceeded,
                try await forgetUploads(of: payer(try place(id, caller), caller), assetStorage)
            else { throw error }
            return try await needNow(of: asset, in: id, assetStorage, caller)
        }
    }

    private func needNow(
        of asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> Need {
        try asset.check()
        guard asset.size <= limits.bytesPerAsset else {
            throw CloudError(.limitExceeded, "an asset has \(limits.bytesPerAsset) bytes at the most, not \(asset.size)")
        }
        let place = try place(id, caller)
        let upload = self.upload(of: asset, in: place, caller)
        let there = try await storage.read { rows throws(CloudError) in
            var there: Int64?
            if caller.scope == .shared {
                let access = try access(to: id, caller, rows)
                try access.demandWriting()
                there = try assets([asset.digest], for: access, rows)[asset.digest]
            } else {
                there = try rows.assets([asset.digest], owner: place.owner)[asset.digest]
            }
            if there == nil, try rows.reservation(upload) == nil { try checkRoom(for: asset, upload, caller, rows) }
            return there
        }
        guard let there else { return .room }
        guard there == asset.size else {
            throw CloudError(.assetNotAvailable, "the content of the digest \(asset.digest) has not \(asset.size) bytes")
        }
        return try await keep([asset], owner: place.owner, assetStorage).isEmpty ? .nothing : .content
    }

    // What an upload takes of a quota

    /// Uploads that an account may have begun at once.
    private static let uploadsAtOnce = 1_000
    /// After so long without a piece, what was begun is gone: microseconds.
    private static let uploadAge: Int64 = 7 * 86_400 * 1_000_000
    /// The room of an upload without a piece is kept for so long: microseconds.
    private static let firstPieceAge: Int64 = 3_600 * 1_000_000

    /// Who pays for what the caller puts somewhere: the owner of a private zone; in the public database, who puts it there.
    func payer(_ place: StoredZone.Place, _ caller: Caller) -> String {
        place.scope == .public ? caller.user : place.owner
    }

    func payer(_ zone: StoredZone, _ caller: Caller) -> String { payer(zone.place, caller) }

    /// Who has paid for a record.
    func payer(of record: StoredCloudRecord, in zone: StoredZone) -> String {
        zone.place.scope == .public ? record.created.userRecordName : zone.place.owner
    }

    private func upload(of asset: CloudAsset, in place: StoredZone.Place, _ caller: Caller) -> StoredUpload {
        StoredUpload(payer: payer(place, caller), owner: place.owner, digest: asset.digest, user: caller.user)
    }

    /// - Throws: `CloudError` `quotaExceeded`.
    private func checkRoom(
        for asset: CloudAsset, _ upload: StoredUpload, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard caller.quota < .max else { return }
        let (used, reserved) = (try rows.used(by: upload.payer), try rows.reserved(by: upload.payer))
        // What the upload has reserved itself is there for it.
        let own = try rows.reservation(upload) ?? 0
        let needed = asset.size + StoredUpload.overhead
        guard used + reserved.bytes - own + needed <= caller.quota else {
            throw caller.noRoom("an asset", needing: needed, used: used, reserved: reserved.bytes - own)
        }
    }

    /// Sets room aside for an upload that comes in pieces. No other can take it, whoever comes at the same time.
    private func reserve(
        _ asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) {
        let upload = upload(of: asset, in: try place(id, caller), caller)
        let isReserved = try await storage.read { rows throws(CloudError) in
            try rows.reservation(upload) == asset.size + StoredUpload.overhead
        }
        guard !isReserved else { return }
        try await storage.write(owners: [upload.payer]) { rows throws(CloudError) in
            if caller.scope == .shared { try access(to: id, caller, rows).demandWriting() }
            try checkRoom(for: asset, upload, caller, rows)
            guard try rows.reserved(by: upload.payer).count < Self.uploadsAtOnce else {
                throw CloudError(
                    .limitExceeded, "an account has \(Self.uploadsAtOnce) unfinished uploads at the most. Finish some first")
            }
            try rows.reserve(asset.size + StoredUpload.overhead, for: upload, at: now())
        }
    }

    /// Gives back the room of uploads that nobody has gone on with for a week.
    ///
    /// - Parameter payer: Whose; `nil` for all.
    /// - Returns: Whether there were some.
    @discardableResult
    package func forgetUploads(of payer: String?, _ assetStorage: any AssetStorage) async throws(CloudError) -> Bool {
        let begun = try await storage.read { rows throws(CloudError) in try rows.reservations(of: payer) }
        var stale: [StoredUpload] = []
        for (upload, time) in begun {
            // The first piece comes soon after its room was set aside.
            let last = await assetStorage.lastPiece(of: upload.digest, owner: upload.owner, by: uploader(upload))
            if last.map({ $0 < now() - Self.uploadAge }) ?? (time < now() - Self.firstPieceAge) { stale.append(upload) }
        }
        guard !stale.isEmpty else { return false }
        for owner in Set(stale.map(\.owner)) { _ = try await assetStorage.unfinished(beside: nil, owner: owner) }
        for (payer, gone) in Dictionary(grouping: stale, by: \.payer).sorted(by: { $0.key < $1.key }) {
            try await storage.write(owners: [payer]) { rows throws(CloudError) in
                for upload in gone { try rows.removeReservation(upload) }
            }
        }
        return true
    }

    private func uploader(_ upload: StoredUpload) -> String? { upload.user == upload.owner ? nil : upload.user }

    /// Notes an asset that lies on the asset storage now, and who has sent it; it counts from here on. One for which there is no room is removed.
    private func count(
        _ asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) {
        let place = try place(id, caller)
        let (owner, upload) = (place.owner, upload(of: asset, in: place, caller))
        let isFull = try await storage.write(owners: [owner, upload.payer]) { rows throws(CloudError) -> CloudError? in
            if caller.scope == .shared {
                try access(to: id, caller, rows).demandWriting()
                try rows.noteUpload(asset.digest, owner: owner, by: caller.user)
            }
            guard try rows.assets([asset.digest], owner: owner).isEmpty else {
                try rows.removeReservation(upload)
                return nil
            }
            // Others may have come to lie there since this one began.
            do throws(CloudError) {
                try checkRoom(for: asset, upload, caller, rows)
            } catch {
                guard error.code == .quotaExceeded else { throw error }
                try rows.removeReservation(upload)
                assetStorage.remove(asset, owner: owner)
                return error
            }
            // Somebody may just have removed it as one that nobody names.
            guard assetStorage.has(asset, owner: owner) else {
                throw CloudError(
                    .serviceUnavailable, forClients: "the asset was removed while it came; upload it again", retryAfter: .zero)
            }
            try rows.removeReservation(upload)
            try rows.addAsset(asset, owner: owner, payer: upload.payer)
            try rows.addUsed(asset.size + StoredUpload.overhead, by: upload.payer)
            return nil
        }
        if let isFull { throw isFull }
    }

    /// Takes files off the asset storage unless they were uploaded anew meanwhile.
    func remove(_ released: ReleasedAssets, _ assetStorage: any AssetStorage) async {
        do throws(CloudError) {
            for some in Self.parts(of: released.assets) {
                try await storage.write(owners: [released.owner]) { rows throws(CloudError) in
                    let there = try rows.assets(Set(some.map(\.digest)), owner: released.owner)
                    for asset in some where there[asset.digest] == nil { assetStorage.remove(asset, owner: released.owner) }
                }
            }
        } catch {
            // A file that stays takes room and does no harm: it is replaced when the same comes again, and a sweep removes it.
        }
    }

    package func download(
        _ asset: CloudAsset, in id: CloudZoneID, from offset: Int64, count: Int, _ assetStorage: any AssetStorage,
        _ caller: Caller
    ) async throws(CloudError) -> Data {
        let owner = try await owner(of: asset, in: id, caller)
        let piece = try await assetStorage.piece(
            of: asset, from: offset, count: max(0, min(count, limits.bytesPerAssetPiece)), owner: owner)
        // Who was put out while it was read gets nothing of it.
        if caller.scope == .shared { _ = try await self.owner(of: asset, in: id, caller) }
        return piece
    }

    /// Whether an asset's content, which could not be read, is damaged in the storage. The caller has to be allowed to fetch it.
    package func isDamaged(
        _ asset: CloudAsset, in id: CloudZoneID, after error: CloudError, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> Bool {
        guard error.isOtherContent else { return false }
        return await assetStorage.isDamaged(asset, owner: try await owner(of: asset, in: id, caller), after: error)
    }

    /// Returns the address by which a client can read an asset that the caller may fetch; `nil` where it is read through the server alone.
    package func signedURL(
        of asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> String? {
        guard assetStorage.signsURLs else { return nil }
        return try assetStorage.signedURL(of: asset, owner: try await owner(of: asset, in: id, caller))
    }

    /// Whose an asset is that the caller may fetch.
    private func owner(of asset: CloudAsset, in id: CloudZoneID, _ caller: Caller) async throws(CloudError) -> String {
        try await storage.read { rows throws(CloudError) in
            // Who may read a record of the zone may read what it names; and nobody learns more.
            // Whoever says another size than it has asks for something else.
            guard let access = try existing(id, caller, rows),
                try !rows.named([asset.digest], in: access.zone.id, shares: access.shares).isEmpty,
                try rows.assets([asset.digest], owner: access.zone.place.owner)[asset.digest] == asset.size
            else { throw CloudError(.assetNotAvailable, "the asset \(asset.digest.prefix(64)) is not there") }
            return access.zone.place.owner
        }
    }
}

/// Assets of an owner that no record names any more.
///
/// They go at once, also where somebody was told just now that they are there, or has sent them anew: whoever names one of them then is told
/// `assetNotAvailable`, and sends it again. To keep them for a while, as those that were never named, would have what was deleted count on.
struct ReleasedAssets {
    private(set) var owner = ""
    private(set) var assets: [CloudAsset] = []

    init() {}

    /// Those of some assets that no record names any more. They count no longer, and their files may go when the transaction has ended.
    ///
    /// - Parameter found: Needed for the public database, where anybody may have paid for an asset.
    init(
        _ digests: Set<String>, of owner: String, finding found: FoundOwners? = nil, _ rows: any CloudTransaction
    ) throws(CloudError) {
        self.owner = owner
        guard !digests.isEmpty else { return }
        for (asset, payer) in try rows.removeUnnamedAssets(digests, owner: owner) {
            assets.append(asset)
            try found?.demand(payer)
            try rows.addUsed(-asset.size - StoredUpload.overhead, by: payer)
        }
    }

    mutating func add(_ other: ReleasedAssets) {
        owner = other.owner
        assets += other.assets
    }
}

extension CloudEngine.Caller {
    /// The refusal of what does not fit into the payer's storage. How much somebody else has is theirs to know.
    ///
    /// - Parameters:
    ///   - what: What needs the bytes.
    ///   - used: Bytes that the payer has.
    ///   - reserved: Bytes that uploads have begun with.
    func noRoom(_ what: String, needing bytes: Int64, used: Int64, reserved: Int64) -> CloudError {
        let needs = "\(what) needs \(bytes) \(SyncFailure.doesNotFit)"
        guard scope != .shared else { return CloudError(.quotaExceeded, "\(needs) the storage of the zone's owner") }
        return CloudError(
            .quotaExceeded,
            "\(needs) \(SyncFailure.ownStorage): \(used) of \(quota) bytes are used, and uploads that have begun need \(reserved). Remove "
                + "something, or ask who runs the server for a larger quota")
    }
}
