package import Foundation
package import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// Returns those of some assets that are missing, each with the number of its bytes that have arrived.
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

    /// The user who uploads, where several users may upload for one owner; `nil` in a private database. A user can't continue an
    /// upload that another user began.
    private func uploader(_ caller: Caller) -> String? { caller.scope == .private ? nil : caller.user }

    /// Returns the sizes of those assets that exist and that the caller's records may name. In the caller's own zones these are
    /// all assets of the owner. In another owner's zone these are the assets that the caller has uploaded, and those that records
    /// name which the caller may read.
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
        // An upload in several pieces reserves its room before its first piece is stored.
        if need == .room, Int64(piece.count) < asset.size { try await reserve(asset, in: id, assetStorage, caller) }
        let (received, isWhole) = try await assetStorage.add(piece, to: asset, at: offset, owner: owner, by: uploader(caller))
        guard isWhole else { return received }
        try await count(asset, in: id, assetStorage, caller)
        return received
    }

    /// Takes a complete content that the caller has hashed: its file moves into the asset storage in one step.
    package func adopt(
        _ file: URL, _ asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) {
        guard try await need(of: asset, in: id, assetStorage, caller) != .nothing else { return }
        try await assetStorage.adopt(file, as: asset, owner: try place(id, caller).owner)
        try await count(asset, in: id, assetStorage, caller)
    }

    /// Returns how many bytes the caller may still send.
    package func room(in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller) async throws(CloudError) -> Int64 {
        let payer = payer(try place(id, caller), caller)
        return try await storage.read { rows throws(CloudError) in
            if caller.scope == .shared { try access(to: id, caller, rows).demandWriting() }
            return max(0, caller.quota - (try rows.used(by: payer)) - (try rows.reserved(by: payer).bytes))
        }
    }

    /// What the cloud needs from a caller who wants to send an asset.
    private enum Need {
        /// The asset exists.
        case nothing
        /// The content alone: rows name the asset, and its bytes are missing. It already counts against the quota.
        case content
        /// The content, and room for it in the quota.
        case room
    }

    /// Returns what an asset needs. Throws where the caller may not write in the zone, or a missing asset does not fit the quota.
    private func need(
        of asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> Need {
        do throws(CloudError) {
            return try await needNow(of: asset, in: id, assetStorage, caller)
        } catch {
            // Abandoned uploads give their room back.
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

    // How uploads count against a quota

    /// The most uploads that an account may have under way.
    private static let uploadsAtOnce = 1_000
    /// Microseconds after the last piece until an upload counts as abandoned.
    private static let uploadAge: Int64 = 7 * 86_400 * 1_000_000
    /// Microseconds after the reservation until an upload without any piece counts as abandoned.
    private static let firstPieceAge: Int64 = 3_600 * 1_000_000

    /// Returns the account that pays for what the caller stores: a private zone's owner; in the public database, the caller.
    func payer(_ place: StoredZone.Place, _ caller: Caller) -> String {
        place.scope == .public ? caller.user : place.owner
    }

    func payer(_ zone: StoredZone, _ caller: Caller) -> String { payer(zone.place, caller) }

    /// Returns the account that has paid for a record.
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
        // The room that this upload has reserved is for this asset.
        let own = try rows.reservation(upload) ?? 0
        let needed = asset.size + StoredUpload.overhead
        guard used + reserved.bytes - own + needed <= caller.quota else {
            throw caller.noRoom("an asset", needing: needed, used: used, reserved: reserved.bytes - own)
        }
    }

    /// Reserves room for an upload that comes in pieces. Other uploads that begin at the same time can't take it.
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

    /// Gives back the room of abandoned uploads: without a piece for a week, or without any piece an hour after the reservation.
    ///
    /// - Parameter payer: The account whose uploads are examined; `nil` for all accounts.
    /// - Returns: Whether there were abandoned uploads.
    @discardableResult
    package func forgetUploads(of payer: String?, _ assetStorage: any AssetStorage) async throws(CloudError) -> Bool {
        let begun = try await storage.read { rows throws(CloudError) in try rows.reservations(of: payer) }
        var stale: [StoredUpload] = []
        for (upload, time) in begun {
            // The first piece usually follows its reservation at once.
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

    /// Records an asset whose content is stored, and the user who sent it. From now on it counts against the quota. An asset that
    /// does not fit is removed.
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
            // Other assets may have arrived since this upload began.
            do throws(CloudError) {
                try checkRoom(for: asset, upload, caller, rows)
            } catch {
                guard error.code == .quotaExceeded else { throw error }
                try rows.removeReservation(upload)
                assetStorage.remove(asset, owner: owner)
                return error
            }
            // A sweep may just have removed the content, because no record named it.
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

    /// Removes contents from the asset storage unless they were uploaded again meanwhile.
    func remove(_ released: ReleasedAssets, _ assetStorage: any AssetStorage) async {
        do throws(CloudError) {
            for some in Self.parts(of: released.assets) {
                try await storage.write(owners: [released.owner]) { rows throws(CloudError) in
                    let there = try rows.assets(Set(some.map(\.digest)), owner: released.owner)
                    for asset in some where there[asset.digest] == nil { assetStorage.remove(asset, owner: released.owner) }
                }
            }
        } catch {
            // A content that stays takes room and does no harm. A later upload replaces it, or a sweep removes it.
        }
    }

    package func download(
        _ asset: CloudAsset, in id: CloudZoneID, from offset: Int64, count: Int, _ assetStorage: any AssetStorage,
        _ caller: Caller
    ) async throws(CloudError) -> Data {
        let owner = try await owner(of: asset, in: id, caller)
        let piece = try await assetStorage.piece(
            of: asset, from: offset, count: max(0, min(count, limits.bytesPerAssetPiece)), owner: owner)
        // A participant who was removed during the read gets none of the content.
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

    /// Returns the address from which a client reads an asset that the caller may fetch; `nil` where only the server hands it
    /// out.
    package func signedURL(
        of asset: CloudAsset, in id: CloudZoneID, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> String? {
        guard assetStorage.signsURLs else { return nil }
        return try assetStorage.signedURL(of: asset, owner: try await owner(of: asset, in: id, caller))
    }

    /// Returns the owner of an asset that the caller may fetch.
    private func owner(of asset: CloudAsset, in id: CloudZoneID, _ caller: Caller) async throws(CloudError) -> String {
        try await storage.read { rows throws(CloudError) in
            // A caller who may read a record may read the assets that it names, and learns of no others.
            // An asset of another size is another asset.
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
/// They are removed at once, even if a client was told a moment ago that they exist, or has just sent them again. A record that
/// then names one of them is refused with `assetNotAvailable`, and its client sends the asset again. If they stayed for a while,
/// as assets that were never named do, deleted content would keep counting against the quota.
struct ReleasedAssets {
    private(set) var owner = ""
    private(set) var assets: [CloudAsset] = []

    init() {}

    /// Takes those of some assets that no record names any more. They stop counting, and their contents may be removed once the
    /// transaction has ended.
    ///
    /// - Parameter found: Collects the accounts that paid. The public database needs it, where any account may have paid for an
    ///   asset.
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
    /// Makes the error for content that does not fit the payer's quota. A participant is not told how much the owner has stored.
    ///
    /// - Parameters:
    ///   - what: What needs the bytes.
    ///   - used: The bytes that the payer has stored.
    ///   - reserved: The bytes that unfinished uploads reserve.
    func noRoom(_ what: String, needing bytes: Int64, used: Int64, reserved: Int64) -> CloudError {
        let needs = "\(what) needs \(bytes) \(SyncFailure.doesNotFit)"
        guard scope != .shared else { return CloudError(.quotaExceeded, "\(needs) the storage of the zone's owner") }
        return CloudError(
            .quotaExceeded,
            "\(needs) \(SyncFailure.ownStorage): \(used) of \(quota) bytes are used, and uploads that have begun need \(reserved). Remove "
                + "something, or ask who runs the server for a larger quota")
    }
}
