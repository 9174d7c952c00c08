package import Foundation
package import TidemarkCloud
import TidemarkModel

/// Removes assets, uploads and replies that nothing needs any more.
extension CloudEngine {
    /// The number of assets that a sweep examines in one transaction.
    private static let sweptAtOnce = 500
    /// The most contents that one transaction examines or removes. A bucket needs up to two requests for each, and the owner's
    /// other writes wait meanwhile.
    private static let contentsAtOnce = 20

    /// The number of contents after which a sweep asks whether to continue.
    private static let contentsBetweenQuestions = 2_000

    /// Divides contents into parts, one for each transaction.
    static func parts(of contents: [CloudAsset]) -> [ArraySlice<CloudAsset>] {
        stride(from: 0, to: contents.count, by: contentsAtOnce).map {
            contents[$0..<min($0 + contentsAtOnce, contents.count)]
        }
    }

    /// Keeps assets for another day: a client is being told that they exist, and a record that names them may be on its way.
    ///
    /// - Returns: The digests of assets that were removed meanwhile, and of assets that rows name and whose contents are missing.
    ///   The client has to send both.
    /// - Throws: `CloudError` `serviceUnavailable` where the place of the contents is not there.
    func keep(_ assets: [CloudAsset], owner: String, _ assetStorage: any AssetStorage) async throws(CloudError) -> Set<String> {
        guard !assets.isEmpty else { return [] }
        let examined = try await assetStorage.examine(assets, owner: owner)
        var gone = Set(examined.missing.map(\.digest))
        for some in Self.parts(of: examined.aging) {
            // A sweep also removes old assets in a write transaction, so one runs after the other.
            let missing = try await storage.write(owners: [owner]) { rows throws(CloudError) -> Set<String> in
                let digests = Set(some.map(\.digest))
                let there = try rows.assets(digests, owner: owner)
                for asset in some where there[asset.digest] != nil { assetStorage.touch(asset, owner: owner) }
                return digests.subtracting(there.keys)
            }
            gone.formUnion(missing)
        }
        return gone
    }

    /// Removes replies that are older than any repeated request can be, except each user's newest ones. Where a clock was ahead,
    /// it sets the times of replies back. A user's next request removes that user's old replies; this is for users who don't come
    /// back.
    package func forgetAnswers() async throws(CloudError) {
        let age = AnswerAge(at: now())
        var last: [String] = []
        while true {
            let users = try await storage.read { rows throws(CloudError) in
                try rows.usersWithAnswers(age, limit: Self.sweptAtOnce)
            }
            for user in users {
                try await storage.write(owners: [user]) { rows throws(CloudError) in
                    try rows.setBackAnswers(of: user, age)
                    try rows.forgetAnswers(of: user, age)
                }
            }
            // Replies of equal times stay together, so the same users may be found again.
            if users.count < Self.sweptAtOnce || users == last { return }
            last = users
        }
    }

    /// Removes from an owner's asset storage what nothing needs: contents that no record names, 25 hours after they were stored
    /// or last asked for, and abandoned uploads. O(assets).
    ///
    /// - Parameter goesOn: Called after every few thousand contents; returns whether to continue.
    /// - Returns: The number of removed contents.
    package func sweep(
        _ owner: String, _ assetStorage: any AssetStorage, at now: Date,
        while goesOn: @Sendable () async throws(CloudError) -> Bool = { true }
    ) async throws(CloudError) -> Int {
        _ = try await assetStorage.unfinished(beside: nil, owner: owner)
        let (unnamed, isWhole) = try await removeUnnamed(of: owner, assetStorage, at: now, while: goesOn)
        guard isWhole else { return unnamed }
        return unnamed + (try await removeUnknown(of: owner, assetStorage, at: now, while: goesOn))
    }

    /// - Returns: The number of removed contents, and whether all were examined.
    private func removeUnnamed(
        of owner: String, _ assetStorage: any AssetStorage, at now: Date,
        while goesOn: @Sendable () async throws(CloudError) -> Bool
    ) async throws(CloudError) -> (count: Int, isWhole: Bool) {
        var (count, last, seen) = (0, "", 0)
        while true {
            let after = last
            let page = try await storage.read { rows throws(CloudError) in
                try rows.unnamedAssets(of: owner, after: after, limit: Self.sweptAtOnce)
            }
            let old = await assetStorage.old(page.unnamed, owner: owner, at: now)
            for some in Self.parts(of: old) {
                let (released, isWhole) = try await write(owners: [owner]) {
                    rows, found throws(CloudError) -> (ReleasedAssets, Bool) in
                    // By now a record may name one of them, or a client may have asked for it.
                    let still = some.prefix { assetStorage.isOld($0, owner: owner, at: now) }
                    let released = try ReleasedAssets(Set(still.map(\.digest)), of: owner, finding: found, rows)
                    return (released, still.count == some.count)
                }
                await remove(released, assetStorage)
                count += released.assets.count
                // A bucket that no longer answers would delay the owner once for each content. The next sweep removes the rest.
                guard isWhole else { break }
            }
            guard let end = page.last else { return (count, true) }
            last = end
            seen += Self.sweptAtOnce
            if seen.isMultiple(of: Self.contentsBetweenQuestions), try await !goesOn() { return (count, false) }
        }
    }

    /// Removes contents that were stored and never got a row, because the client or the process had ended by then.
    ///
    /// Older contents than the database stay. Where a database was moved away, an empty one is made, which knows none of the
    /// contents beside it.
    private func removeUnknown(
        of owner: String, _ assetStorage: any AssetStorage, at now: Date,
        while goesOn: @Sendable () async throws(CloudError) -> Bool
    ) async throws(CloudError) -> Int {
        let began = Date(timeIntervalSince1970: Double(storage.began) / 1e6)
        var (count, seen, place): (Int, Int, String?) = (0, 0, nil)
        repeat {
            let page = try await assetStorage.digests(of: owner, from: place)
            place = page.next
            let there = page.digests
            guard !there.isEmpty else { continue }
            let known = try await storage.read { rows throws(CloudError) in try rows.assets(there, owner: owner) }
            let unknown = there.filter { known[$0] == nil }.map { CloudAsset(digest: $0, size: 0) }
            let strays = await assetStorage.strays(unknown, owner: owner, at: now, since: began)
            for some in Self.parts(of: strays) {
                let (removed, isWhole) = try await storage.write(owners: [owner]) { rows throws(CloudError) -> (Int, Bool) in
                    let counted = try rows.assets(Set(some.map(\.digest)), owner: owner)
                    let still = some.filter { counted[$0.digest] == nil }
                    let gone = still.prefix { assetStorage.isStray($0, owner: owner, at: now, since: began) }
                    for asset in gone { assetStorage.remove(asset, owner: owner) }
                    return (gone.count, gone.count == still.count)
                }
                count += removed
                // As in `removeUnnamed`.
                guard isWhole else { break }
            }
            seen += there.count
            if seen >= Self.contentsBetweenQuestions {
                seen = 0
                guard try await goesOn() else { return count }
            }
        } while place != nil
        return count
    }
}
