import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    private static func content(_ count: Int, seed: UInt8) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) ^ seed })
    }

    private static func downloaded(_ asset: CloudAsset, from database: any CloudDatabase, piece: Int) async throws -> Data {
        var data = Data()
        while data.count < asset.size {
            let more = try await database.download(asset, in: zone, from: Int64(data.count), count: piece)
            guard !more.isEmpty else {
                throw Violation(description: "the download ended after \(data.count) of \(asset.size) bytes")
            }
            data += more
        }
        return data
    }

    static let assets: [Check] = [
        Check("an asset goes up in pieces, goes on where it was broken off, and comes back") { subject in
            let database = try await journal(subject)
            let content = content(1_000_000, seed: 7)
            let asset = AssetDigest.asset(of: content)
            try equal(try await database.missingAssets([asset], in: zone), [asset: 0])
            try equal(try await database.upload(content[0..<300_000], of: asset, at: 0, in: zone), 300_000)
            try equal(try await database.missingAssets([asset], in: zone), [asset: 300_000])
            // A repeated piece does not count twice.
            try equal(try await database.upload(content[0..<300_000], of: asset, at: 0, in: zone), 300_000)
            try equal(try await database.upload(content[100_000..<200_000], of: asset, at: 100_000, in: zone), 300_000)
            try equal(try await database.upload(content[200_000..<350_000], of: asset, at: 200_000, in: zone), 350_000)
            try equal(try await database.missingAssets([asset], in: zone), [asset: 350_000])
            // A piece after a gap is refused.
            try await refused(.invalidArguments) {
                try await database.upload(content[400_000..<500_000], of: asset, at: 400_000, in: zone)
            }
            let named = record("a", ["image": .asset(asset)])
            try failed(try await one(RecordOperation(.create, named), to: database), .assetNotAvailable)
            try equal(try await database.upload(content[350_000...], of: asset, at: 350_000, in: zone), 1_000_000)
            try equal(try await database.missingAssets([asset], in: zone), [:])
            try equal(try await save(named, .create, to: database).fields, ["image": .asset(asset)])
            try equal(try await downloaded(asset, from: database, piece: 123_456), content)
            try equal(try await database.download(asset, in: zone, from: 1_000_000, count: 10), Data())
        },
        Check("a content that is not what its digest says is not taken") { subject in
            let database = try await journal(subject)
            let asset = AssetDigest.asset(of: content(1000, seed: 1))
            try await refused(.assetNotAvailable) {
                try await database.upload(content(1000, seed: 2), of: asset, at: 0, in: zone)
            }
            try await refused(.invalidArguments) { try await database.upload(content(1001, seed: 1), of: asset, at: 0, in: zone) }
            try equal(try await database.missingAssets([asset], in: zone), [asset: 0])
            try equal(try await database.upload(content(1000, seed: 1), of: asset, at: 0, in: zone), 1000)
            for digest in ["", "../../etc/passwd", String(repeating: "g", count: 64)] {
                try await refused(.invalidArguments) {
                    try await database.upload(Data([1]), of: CloudAsset(digest: digest, size: 1), at: 0, in: zone)
                }
            }
        },
        Check("a digest gives nobody the content of somebody else's asset") { subject in
            let (database, stranger) = (try await journal(subject), try await journal(subject, account: ben))
            let content = content(5000, seed: 3)
            let asset = AssetDigest.asset(of: content)
            _ = try await database.upload(content, of: asset, at: 0, in: zone)
            try await save(record("a", ["image": .asset(asset)]), .create, to: database)
            try equal(try await stranger.missingAssets([asset], in: zone), [asset: 0])
            try failed(
                try await one(RecordOperation(.create, record("a", ["image": .asset(asset)])), to: stranger), .assetNotAvailable)
            try await refused(.assetNotAvailable) { try await stranger.download(asset, in: zone, from: 0, count: 10) }
            let owner = try await database.account().userRecordName ?? ""
            try await refused(.zoneNotFound) {
                try await stranger.download(asset, in: CloudZoneID("Journal", owner: owner), from: 0, count: 10)
            }
            // An asset that no record names can't be downloaded, not even by its owner.
            _ = try await one(.delete(CloudRecordID("a", in: zone)), to: database)
            try await refused(.assetNotAvailable) { try await database.download(asset, in: zone, from: 0, count: 10) }
        },
        Check("an asset goes, and counts no more, with the last record that names it") { subject in
            let database = try await journal(subject)
            let asset = AssetDigest.asset(of: content(5000, seed: 4))
            _ = try await database.upload(content(5000, seed: 4), of: asset, at: 0, in: zone)
            for name in ["a", "b"] { try await save(record(name, ["image": .asset(asset)]), .create, to: database) }
            _ = try await one(.delete(CloudRecordID("a", in: zone)), to: database)
            try equal(try await downloaded(asset, from: database, piece: 5000).count, 5000)
            try equal(try await database.missingAssets([asset], in: zone), [:])
            try await save(record("b", ["caption": .string("no picture")]), .forceReplace, to: database)
            try equal(try await database.missingAssets([asset], in: zone), [asset: 0])
            try expect(try await database.account().used ?? 0 < 5000, "what nobody names counts")
            // The asset can be uploaded again like a new one. It is deleted with its zone.
            _ = try await database.upload(content(5000, seed: 4), of: asset, at: 0, in: zone)
            try await save(record("c", ["image": .asset(asset)]), .create, to: database)
            try equal(try await downloaded(asset, from: database, piece: 5000), content(5000, seed: 4))
            try await database.modifyZones(saving: [], deleting: [zone])
            try equal(try await database.account().used, 0)
        },
        Check("what is more than an asset may have, or a piece, is refused") { subject in
            let database = try await journal(subject)
            let limits = try await database.limits()
            let digest = String(repeating: "a", count: 64)
            try await refused(.limitExceeded) {
                try await database.upload(
                    Data([1]), of: CloudAsset(digest: digest, size: limits.bytesPerAsset + 1), at: 0, in: zone)
            }
            try await refused(.limitExceeded) {
                try await database.upload(
                    Data(count: limits.bytesPerAssetPiece + 1), of: CloudAsset(digest: digest, size: limits.bytesPerAsset), at: 0,
                    in: zone)
            }
        },
    ]
}
