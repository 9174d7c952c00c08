import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// What of some assets is missing, and how far each has got.
    func missingAssets(
        _ assets: [CloudAsset], in id: CloudZoneID, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) -> [CloudAsset: Int64] {
        guard assets.count <= limits.operationsPerRequest else {
            throw CloudError(.limitExceeded, "a request asks for \(limits.operationsPerRequest) assets at the most")
        }
        for asset in assets { try AssetShelf.check(asset) }
        let owner = try place(id, caller).owner
        let there = try await storage.read { rows throws(CloudError) in
            let digests = Set(assets.map(\.digest))
            guard caller.scope == .shared else { return try rows.assets(digests, owner: owner) }
            return try self.assets(digests, for: try access(to: id, caller, rows), rows)
        }
        let gone = try await keep(assets.filter { there[$0.digest] == $0.size }, owner: owner, shelf)
        var missing: [CloudAsset: Int64] = [:]
        for asset in assets where there[asset.digest] != asset.size || gone.contains(asset.digest) {
            missing[asset] = try await shelf.received(asset, owner: owner, by: uploader(caller))
        }
        return missing
    }

    /// Who puts something on the way to a shelf that is not theirs alone: what others have begun is not theirs to go on with.
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

    func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in id: CloudZoneID, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) -> Int64 {
        let owner = try place(id, caller).owner
        guard piece.count <= limits.bytesPerAssetPiece else {
            throw CloudError(.limitExceeded, "a piece has \(limits.bytesPerAssetPiece) bytes at the most, not \(piece.count)")
        }
        guard try await isWanted(asset, in: id, hasBegun: offset > 0, shelf, caller) else { return asset.size }
        let (received, isWhole) = try await shelf.add(piece, to: asset, at: offset, owner: owner, by: uploader(caller))
        guard isWhole else { return received }
        try await count(asset, in: id, shelf, caller)
        return received
    }

    /// Takes in a content that has come whole and that the caller has hashed: its file moves onto the shelf, in one step.
    func adopt(
        _ file: URL, _ asset: CloudAsset, in id: CloudZoneID, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) {
        guard try await isWanted(asset, in: id, hasBegun: false, shelf, caller) else { return }
        try await shelf.adopt(file, as: asset, owner: try place(id, caller).owner)
        try await count(asset, in: id, shelf, caller)
    }

    /// Bytes that the caller may still send; what is on its way up has its room already.
    func room(in id: CloudZoneID, _ shelf: AssetShelf, _ caller: Caller) async throws(CloudError) -> Int64 {
        let owner = try place(id, caller).owner
        let used = try await storage.read { rows throws(CloudError) in
            if caller.scope == .shared { try access(to: id, caller, rows).demandWriting() }
            return try rows.used(by: owner)
        }
        let begun = try await shelf.unfinished(beside: nil, owner: owner)
        return max(0, caller.quota - used - begun)
    }

    /// Whether an asset has to come yet; then the caller may send it, and there is room.
    private func isWanted(
        _ asset: CloudAsset, in id: CloudZoneID, hasBegun: Bool, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) -> Bool {
        try AssetShelf.check(asset)
        guard asset.size <= limits.bytesPerAsset else {
            throw CloudError(.limitExceeded, "an asset has \(limits.bytesPerAsset) bytes at the most, not \(asset.size)")
        }
        let owner = try place(id, caller).owner
        let (there, used) = try await storage.read { rows throws(CloudError) in
            guard caller.scope == .shared else {
                return (try rows.assets([asset.digest], owner: owner)[asset.digest], try rows.used(by: owner))
            }
            let access = try access(to: id, caller, rows)
            try access.demandWriting()
            return (try assets([asset.digest], for: access, rows)[asset.digest], try rows.used(by: owner))
        }
        if let there {
            guard there == asset.size else {
                throw CloudError(.assetNotAvailable, "the content of the digest \(asset.digest) has not \(asset.size) bytes")
            }
            if try await keep([asset], owner: owner, shelf).isEmpty { return false }
        }
        // What has begun will need its room, too.
        let begun =
            !hasBegun || caller.quota < .max ? try await shelf.unfinished(beside: asset, owner: owner, by: uploader(caller)) : 0
        guard used + begun + asset.size <= caller.quota else {
            // How much somebody else has is theirs to know.
            let numbers = caller.scope == .shared ? "" : ": \(used) of \(caller.quota) bytes are used"
            throw CloudError(.quotaExceeded, "the account's storage is full\(numbers)")
        }
        return true
    }

    /// Notes an asset that lies on the shelf now, and who has sent it; it counts from here on.
    private func count(
        _ asset: CloudAsset, in id: CloudZoneID, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) {
        let owner = try place(id, caller).owner
        try await storage.write { rows throws(CloudError) in
            if caller.scope == .shared {
                try access(to: id, caller, rows).demandWriting()
                try rows.noteUpload(asset.digest, owner: owner, by: caller.user)
            }
            guard try rows.assets([asset.digest], owner: owner).isEmpty else { return }
            // Somebody may just have removed it as one that nobody names.
            guard shelf.has(asset, owner: owner) else {
                throw CloudError(.serviceUnavailable, "the asset was removed while it came; upload it again", retryAfter: .zero)
            }
            try rows.addAsset(asset, owner: owner)
            try rows.addUsed(asset.size, by: owner)
        }
    }

    /// Takes files off the shelf unless they were uploaded anew meanwhile.
    func remove(_ released: ReleasedAssets, _ shelf: AssetShelf) async {
        guard !released.assets.isEmpty else { return }
        // A file that stays takes room and does no harm: it is replaced when the same comes again.
        try? await storage.write { rows throws(CloudError) in
            let there = try rows.assets(Set(released.assets.map(\.digest)), owner: released.owner)
            for asset in released.assets where there[asset.digest] == nil { shelf.remove(asset, owner: released.owner) }
        }
    }

    func download(
        _ asset: CloudAsset, in id: CloudZoneID, from offset: Int64, count: Int, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) -> Data {
        let owner = try await owner(of: asset, in: id, caller)
        let piece = try await shelf.piece(
            of: asset, from: offset, count: max(0, min(count, limits.bytesPerAssetPiece)), owner: owner)
        // Who was put out while it was read gets nothing of it.
        if caller.scope == .shared { _ = try await self.owner(of: asset, in: id, caller) }
        return piece
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
    init(_ digests: Set<String>, of owner: String, _ rows: any CloudTransaction) throws(CloudError) {
        self.owner = owner
        guard !digests.isEmpty else { return }
        assets = try rows.removeUnnamedAssets(digests, owner: owner)
        try rows.addUsed(-assets.reduce(0) { $0 + $1.size }, by: owner)
    }

    mutating func add(_ other: ReleasedAssets) {
        owner = other.owner
        assets += other.assets
    }
}
