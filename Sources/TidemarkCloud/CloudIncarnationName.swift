/// The name of a zone's incarnation: the incarnation of the database, and how often the zone was deleted and made again.
///
/// For a zone that was never deleted, the text in ``ZoneChanges/incarnation`` is the database's incarnation alone. For other
/// zones two numbers follow that name, as in `4f1c….2.1`. Another cloud may use any text; equal texts name the same incarnation.
package struct CloudIncarnationName: Hashable, Sendable {
    package let database: String
    /// The number of times that the zone was made again after a deletion.
    package let remade: Int
    /// The number of times that the zone was made again after its owner had purged it.
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

    /// Whether a device that knows another incarnation compares its records with the cloud's, and sends those that the cloud lacks.
    ///
    /// The device compares where the database was put back to an earlier state, or where the zone was deleted and made again. It does not
    /// compare where the owner has purged the zone since: the records that the cloud lacks were purged.
    package func isToBeCompared(with known: CloudIncarnationName) -> Bool {
        guard database == known.database else { return true }
        return purged == known.purged && remade != known.remade
    }
}
