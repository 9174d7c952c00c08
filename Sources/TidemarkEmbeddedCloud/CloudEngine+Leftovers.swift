import TidemarkCloud
import TidemarkModel

/// What was sent and came to nothing.
extension CloudEngine {
    /// Assets that are looked at in one transaction.
    private static let sweptAtOnce = 500

    /// Has assets stay for another day, since somebody is told that they are there: a record that names them may be on its way.
    ///
    /// - Returns: The digests of those that have gone meanwhile.
    func keep(_ assets: [CloudAsset], owner: String, _ shelf: AssetShelf) async throws(CloudError) -> Set<String> {
        guard !assets.isEmpty else { return [] }
        let aging = await shelf.aging(assets, owner: owner)
        guard !aging.isEmpty else { return [] }
        // What is old is taken away in a transaction that writes, too: one comes after the other.
        return try await storage.write { rows throws(CloudError) in
            let there = try rows.assets(Set(aging.map(\.digest)), owner: owner)
            for asset in aging where there[asset.digest] != nil { shelf.touch(asset, owner: owner) }
            return Set(aging.map(\.digest)).subtracting(there.keys)
        }
    }

    /// Takes away what lies on an owner's shelf and nobody needs: contents that no record names, a day and an hour after they came or were
    /// asked for, and what was begun and left. O(assets).
    ///
    /// - Returns: How many contents went.
    func sweep(_ owner: String, _ shelf: AssetShelf) async throws(CloudError) -> Int {
        _ = try await shelf.unfinished(beside: nil, owner: owner)
        let unnamed = try await removeUnnamed(of: owner, shelf)
        let unknown = try await removeUnknown(of: owner, shelf)
        return unnamed + unknown
    }

    private func removeUnnamed(of owner: String, _ shelf: AssetShelf) async throws(CloudError) -> Int {
        var (count, last) = (0, "")
        while true {
            let after = last
            let page = try await storage.read { rows throws(CloudError) in
                try rows.unnamedAssets(of: owner, after: after, limit: Self.sweptAtOnce)
            }
            let old = await shelf.old(page, owner: owner)
            if !old.isEmpty {
                let released = try await storage.write { rows throws(CloudError) in
                    // A record may name one by now, or somebody may have asked for it.
                    let still = old.filter { shelf.isOld($0, owner: owner) }
                    return try ReleasedAssets(Set(still.map(\.digest)), of: owner, rows)
                }
                await remove(released, shelf)
                count += released.assets.count
            }
            guard page.count == Self.sweptAtOnce, let end = page.last else { return count }
            last = end.digest
        }
    }

    /// Files that came to lie there and were never counted, since whoever sent them, or the process, was gone by then.
    private func removeUnknown(of owner: String, _ shelf: AssetShelf) async throws(CloudError) -> Int {
        var count = 0
        for byte in UInt8.min...UInt8.max {
            let there = await shelf.digests(of: owner, beginningWith: byte)
            guard !there.isEmpty else { continue }
            let known = try await storage.read { rows throws(CloudError) in try rows.assets(there, owner: owner) }
            let unknown = there.filter { known[$0] == nil }.map { CloudAsset(digest: $0, size: 0) }
            let old = await shelf.old(unknown, owner: owner)
            guard !old.isEmpty else { continue }
            count += try await storage.write { rows throws(CloudError) in
                let known = try rows.assets(Set(old.map(\.digest)), owner: owner)
                let gone = old.filter { known[$0.digest] == nil && shelf.isOld($0, owner: owner) }
                for asset in gone { shelf.remove(asset, owner: owner) }
                return gone.count
            }
        }
        return count
    }
}

extension EmbeddedCloud {
    /// Takes away contents of assets that were sent and that no record names, a day and an hour after they came or were last asked for,
    /// and what was begun and left for a week. A server does it each hour. O(assets).
    ///
    /// - Returns: How many contents went.
    /// - Throws: `CloudError` `internalError`.
    @discardableResult
    public func removeLeftovers() async throws(CloudError) -> Int {
        var count = 0
        for (name, environment) in containers() {
            let container = try self.container(name, environment)
            for owner in await container.shelf.owners() {
                count += try await container.engine.sweep(owner, container.shelf)
            }
        }
        return count
    }
}
