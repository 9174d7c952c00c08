import TidemarkAccess
import TidemarkEmbeddedCloud

/// An embedded cloud, and who may come in: what the operations work on.
struct ServedCloud: Sendable {
    let cloud: EmbeddedCloud
    let access: AccessBook
}
