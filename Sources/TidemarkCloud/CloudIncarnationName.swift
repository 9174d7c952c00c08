/// What a device knows the life of a cloud's zone by: the life of the database, and how often the zone was deleted and made again.
///
/// The text in ``ZoneChanges/incarnation`` is the name of the database's life alone for a zone that was never deleted, else that name with
/// two numbers behind it, as `4f1c….2.1`. Of another cloud's text nothing is assumed but that an equal one names the same life.
package struct CloudIncarnationName: Hashable, Sendable {
    package let database: String
    /// How often the zone was made again after it was deleted.
    package let remade: Int
    /// How often the zone was deleted for good.
    package let purged: Int

    package init(database: String, remade: Int = 0, purged: Int = 0) {
        self.database = database
        self.remade = remade
        self.purged = purged
    }

    package init(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 3, let remade = Int(parts[1]), let purged = Int(parts[2]), remade >= 0, purged >= 0 {
            self.init(database: String(parts[0]), remade: remade, purged: purged)
        } else {
            self.init(database: text)
        }
    }

    package var text: String { remade == 0 && purged == 0 ? database : "\(database).\(remade).\(purged)" }

    /// Whether a device that knows an earlier life sends what the cloud lacks of it.
    ///
    /// It does where the database was put back to an earlier state, or where the zone was lost and made again. It does not where the owner
    /// has deleted the zone for good since: then what the cloud lacks was deleted.
    package func isToBeCompared(with known: CloudIncarnationName) -> Bool {
        guard database == known.database else { return true }
        return purged == known.purged && remade != known.remade
    }
}
