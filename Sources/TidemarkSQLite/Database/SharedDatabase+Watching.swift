import CTideCore
package import Foundation
package import GRDB

extension SharedDatabase {
    /// A connection of its own to a file that is open already, which only reads.
    ///
    /// By `PRAGMA data_version` it can tell cheaply whether something was committed by any other connection, of this process or another.
    package static func watcher(of url: URL) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "tidemark.watcher"
        configuration.readonly = true
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { db in
            let handle = try db.handle
            try checked { tide_connection_prepare(handle, &$0) }
            try db.readFirstPage(of: url.path)
        }
        return try DatabaseQueue(path: url.path, configuration: configuration)
    }
}
