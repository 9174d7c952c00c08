package import Foundation
package import TidemarkCloud
import TidemarkModel

/// What was sent and came to nothing.
extension CloudEngine {
    /// Assets that are looked at in one transaction.
    private static let sweptAtOnce = 500
    /// Contents of which a transaction asks the storage, or removes them, at the most. A bucket needs up to two requests for each, and the owner's
    /// other writes wait meanwhile.
    private static let contentsAtOnce = 20

    /// Contents that a sweep looks at before it asks whether to go on.
    private static let contentsBetweenQuestions = 2_000

    /// Divides contents into parts, each for a transaction of its own.
    static func parts(of contents: [CloudAsset]) -> [ArraySlice<CloudAsset>] {
        stride(from: 0, to: contents.count, by: contentsAtOnce).map {
            contents[$0..<min($0 + contentsAtOnce, contents.count)]
        }
    }

    /// Has assets stay for another day, since a client is told that they are there: a record that names them may be on its way.
    ///
    /// - Returns: The digests of those that have gone meanwhile, and of those whose contents are missing although the rows name them: the client
    ///   has to send both.
    /// - Throws: `CloudError` `serviceUnavailable` where the place of the contents is not there.
    func keep(_ assets: [CloudAsset], owner: String, _ assetStorage: any AssetStorage) async throws(CloudError) -> Set<String> {
        guard !assets.isEmpty else { return [] }
        let examined = try await assetStorage.examine(assets, owner: owner)
        var gone = Set(examined.missing.map(\.digest))
        for some in Self.parts(of: examined.aging) {
            // What is old is taken away in a transaction that writes, too: one comes after the other.
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

    /// Forgets the answers that are older than a repeated request may be, but for the newest of each user, and sets times back that are from a clock
    /// that was ahead. A user's old answers go with the user's next request; this is for those who don't come back.
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
            // Answers of one moment can't be told apart, and stay: their users are found again.
            if users.count < Self.sweptAtOnce || users == last { return }
            last = users
        }
    }

    /// Takes away what lies on an owner's asset storage and nobody needs: contents that no record names, a day and an hour after they came or were
    /// asked for, and what was begun and left. O(assets).
    ///
    /// - Parameter goesOn: Is asked whether to go on, each time after some thousands of contents.
    /// - Returns: How many contents went.
    package func sweep(
        _ owner: String, _ assetStorage: any AssetStorage, at now: Date,
        while goesOn: @Sendable () async throws(CloudError) -> Bool = { true }
    ) async throws(CloudError) -> Int {
        _ = try await assetStorage.unfinished(beside: nil, owner: owner)
        let (unnamed, isWhole) = try await removeUnnamed(of: owner, assetStorage, at: now, while: goesOn)
        guard isWhole else { return unnamed }
        return unnamed + (try await removeUnknown(of: owner, assetStorage, at: now, while: goesOn))
    }

    /// - Returns: How many contents went, and whether all were looked at.
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
                    // A record may name one by now, or somebody may have asked for it.
                    let still = some.prefix { assetStorage.isOld($0, owner: owner, at: now) }
                    let released = try ReleasedAssets(Set(still.map(\.digest)), of: owner, finding: found, rows)
                    return (released, still.count == some.count)
                }
                await remove(released, assetStorage)
                count += released.assets.count
                // Where the bucket does not answer any more, the owner would wait for each of the others as long. They go with the next sweep.
                guard isWhole else { break }
            }
            guard let end = page.last else { return (count, true) }
            last = end
            seen += Self.sweptAtOnce
            if seen.isMultiple(of: Self.contentsBetweenQuestions), try await !goesOn() { return (count, false) }
        }
    }

    /// Files that came to lie there and were never counted, since whoever sent them, or the process, was gone by then.
    ///
    /// Only what came when the database was there: where it was moved away, or its folder was there before it, an empty one is made, which
    /// knows nothing of what lies beside it.
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
                // As above.
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
