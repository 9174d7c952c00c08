import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Assets: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, downloads and evicts the contents of assets, and removes those that nothing names.",
        discussion: """
            A container may hold records without their contents: 'tidemark sync --assets on-demand' leaves them in the cloud. Only contents \
            that the cloud says it has can be evicted.

            Examples:
              tidemark assets list MyJournal.tidemark
              tidemark assets download MyJournal.tidemark senja
              tidemark assets evict MyJournal.tidemark --to 500MB
              tidemark assets clean MyJournal.tidemark --dry-run
            """,
        subcommands: [AssetsList.self, AssetsDownload.self, AssetsEvict.self, AssetsClean.self])
}

/// The choice, on the command line, of the contents that are fetched along with their records.
struct AssetChoice: ExpressibleByArgument {
    let downloads: AssetDownloads

    init?(argument: String) {
        switch argument {
        case "all": downloads = .all
        case "on-demand": downloads = .onDemand
        default:
            let prefix = "up-to:"
            guard argument.hasPrefix(prefix), let count = ByteCount(argument: String(argument.dropFirst(prefix.count))) else {
                return nil
            }
            downloads = .upTo(bytes: count.bytes)
        }
    }
}

/// The numbers of contents that are here, and that only the cloud has.
struct AssetsReport: Encodable {
    let downloaded, notDownloaded: Int
    let downloadedBytes, notDownloadedBytes: Int64

    init(_ inventory: AssetInventory) {
        (downloaded, downloadedBytes) = (inventory.downloaded, inventory.downloadedBytes)
        (notDownloaded, notDownloadedBytes) = (inventory.notDownloaded, inventory.notDownloadedBytes)
    }

    var text: String {
        let here = "\(Wording.count(downloaded)) here (\(Wording.bytes(Int(downloadedBytes))))"
        guard notDownloaded > 0 else { return here }
        return "\(here), \(Wording.count(notDownloaded)) in the cloud alone (\(Wording.bytes(Int(notDownloadedBytes))))"
    }
}

extension AssetInventory {
    /// The contents of records.
    ///
    /// - Parameters:
    ///   - names: The names of records on the command line; empty for all contents.
    ///   - type: A record type; `nil` for all.
    /// - Throws: ``StoreError`` `notFound` for a name of which no record has a content.
    func contents(of names: [String], type: String?) throws -> [Content] {
        for name in names where !contents.contains(where: { $0.records.contains { $0.isMeant(by: name) } }) {
            throw StoreError(.notFound, "there is no record '\(name)' that names an asset")
        }
        guard !names.isEmpty || type != nil else { return contents }
        return contents.filter { content in
            content.records.contains { record in
                (type == nil || record.type == type) && (names.isEmpty || names.contains { record.isMeant(by: $0) })
            }
        }
    }
}
