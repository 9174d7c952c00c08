package import Foundation
package import TidemarkCloud
import TidemarkModel

/// What was sent and came to nothing.
extension CloudEngine {
    /// Assets that are looked at in one transaction.
    private static let sweptAtOnce = 500

    /// Has assets stay for another day, since somebody is told that they are there: a record that names them may be on its way.
    ///
    /// - Returns: The digests of those that have gone meanwhile.
    func keep(_ assets: [CloudAsset], owner: String, _ assetStorage: any AssetStorage) async throws(CloudError) -> Set<String> {
        guard !assets.isEmpty else { return [] }
        let aging = await assetStorage.aging(assets, owner: owner)
        guard !aging.isEmpty else { return [] }
        // What is old is taken away in a transaction that writes, too: one comes after the other.
        return try await storage.write(owners: [owner]) { rows throws(CloudError) in
            let there = try rows.assets(Set(aging.map(\.digest)), owner: owner)
            for asset in aging where there[asset.digest] != nil { assetStorage.touch(asset, owner: owner) }
            return Set(aging.map(\.digest)).subtracting(there.keys)
        }
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
    /// - Returns: How many contents went.
    package func sweep(_ owner: String, _ assetStorage: any AssetStorage, at now: Date) async throws(CloudError) -> Int {
        _ = try await assetStorage.unfinished(beside: nil, owner: owner)
        let unnamed = try await removeUnnamed(of: owner, assetStorage, at: now)
        let unknown = try await removeUnknown(of: owner, assetStorage, at: now)
        return unnamed + unknown
    }

    private func removeUnnamed(of owner: String, _ assetStorage: any AssetStorage, at now: Date) async throws(CloudError) -> Int {
        var (count, last) = (0, "")
        while true {
            let after = last
            let page = try await storage.read { rows throws(CloudError) in
                try rows.unnamedAssets(of: owner, after: after, limit: Self.sweptAtOnce)
            }
            let old = await assetStorage.old(page.unnamed, owner: owner, at: now)
            if !old.isEmpty {
                let released = try await write(owners: [owner]) { rows, found throws(CloudError) in
                    // A record may name one by now, or somebody may have asked for it.
                    let still = old.filter { assetStorage.isOld($0, owner: owner, at: now) }
                    return try ReleasedAssets(Set(still.map(\.digest)), of: owner, finding: found, rows)
                }
                await remove(released, assetStorage)
                count += released.assets.count
            }
            guard let end = page.last else { return count }
            last = end
        }
    }

    /// Files that came to lie there and were never counted, since whoever sent them, or the process, was gone by then.
    ///
    /// Only what came when the database was there: where it was moved away, or its folder was there before it, an empty one is made, which
    /// knows nothing of what lies beside it.
    private func removeUnknown(of owner: String, _ assetStorage: any AssetStorage, at now: Date) async throws(CloudError) -> Int {
        let began = Date(timeIntervalSince1970: Double(storage.began) / 1e6)
        var count = 0
        for byte in UInt8.min...UInt8.max {
            let there = try await assetStorage.digests(of: owner, beginningWith: byte)
            guard !there.isEmpty else { continue }
            let known = try await storage.read { rows throws(CloudError) in try rows.assets(there, owner: owner) }
            let unknown = there.filter { known[$0] == nil }.map { CloudAsset(digest: $0, size: 0) }
            let strays = await assetStorage.strays(unknown, owner: owner, at: now, since: began)
            guard !strays.isEmpty else { continue }
            count += try await storage.write(owners: [owner]) { rows throws(CloudError) in
                let known = try rows.assets(Set(strays.map(\.digest)), owner: owner)
                let gone = strays.filter {
                    known[$0.digest] == nil && assetStorage.isStray($0, owner: owner, at: now, since: began)
                }
                for asset in gone { assetStorage.remove(asset, owner: owner) }
                return gone.count
            }
        }
        return count
    }
}
