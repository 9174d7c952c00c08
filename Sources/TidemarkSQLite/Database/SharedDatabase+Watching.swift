import CTideCore
package import Foundation
package import GRDB

extension SharedDatabase {
    /// Opens a second connection to a file that is open already. The connection only reads.
    ///
    /// Its `PRAGMA data_version` shows cheaply whether any other connection, of this process or another, has committed.
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
