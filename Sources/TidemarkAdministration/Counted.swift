import TidemarkEmbeddedCloud

/// A number with what it counts, as texts for people have it: `1 record`, `2 records`.
///
/// - Parameter noun: In the singular; its plural ends in `s`.
func counted(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

extension EmbeddedCloud.Removed {
    /// The removal in the words of the audit log: `with 4 records in 1 zone`.
    var auditSubject: String { "with \(counted(records, "record")) in \(counted(zones, "zone"))" }
}
