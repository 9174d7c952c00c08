import Foundation
import TidemarkCommands
import TidemarkServer

extension StorageOptions {
    /// The place that the options name; `nil` without a database.
    func place() -> ServerConfiguration.Database? {
        guard let database, let assets else { return nil }
        return place(database: database, assets: assets)
    }

    /// The place of a database and of its assets, with the other options.
    func place(database: String, assets: String) -> ServerConfiguration.Database {
        let place: ServerConfiguration.Assets =
            if let (name, prefix) = Self.bucket(of: assets) {
                .bucket(
                    name: name, prefix: prefix, endpoint: s3Endpoint, region: s3Region, usesPaths: s3Style.map { $0 == "path" })
            } else {
                .directory(URL(fileURLWithPath: assets, isDirectory: true))
            }
        var configuration = ServerConfiguration.Database(address: database, assets: place)
        (configuration.connections, configuration.isBehindPooler) = (databaseConnections, databasePooler)
        configuration.listenAddress = databaseDirect
        return configuration
    }
}
