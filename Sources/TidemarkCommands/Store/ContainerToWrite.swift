import Foundation
import TidemarkSQLite
import TidemarkStore

/// Opens the container that a command writes to. A container of an older format is migrated first, because most commands read
/// before they write.
///
/// - Parameters:
///   - path: The container, as the command line names it.
///   - isDryRun: Whether the command writes nothing this time. Then a container of an older format stays as it is.
func containerToWrite(_ path: String, isDryRun: Bool = false) throws -> ContainerDirectory {
    let container = try ContainerDirectory(openingAt: fileURL(path, "the container"))
    return container.hasOlderFormat && !isDryRun ? try container.migrate() : container
}
