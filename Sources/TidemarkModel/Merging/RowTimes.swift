/// The edit times of the fields of a row: the text in its column `_edited`.
///
/// Most fields have one time, which the cloud has too. A field whose local value a merge has kept has two times:
/// `;<field>=<time>` is the local one, as ``EditTimes`` reads it, and `;<field><<time>` is the cloud's. The text after `<` is
/// empty if the cloud has no time.
package struct RowTimes: Equatable, Sendable {
    /// The times as they are sent to the cloud.
    package private(set) var here: EditTimes
    /// The cloud's times of the fields whose local time differs.
    private var others: [String: EditTime?] = [:]

    package init(cloud: EditTimes) { here = cloud }

    /// The cloud's edit time of a field.
    package func cloud(_ field: String) -> EditTime? { others[field] ?? here[field] }

    /// Whether the record was moved to another zone here, and the cloud does not have the move yet.
    package var isMoved: Bool { others.keys.contains(EditTimes.move) }

    /// The times of a record that the cloud has lost: they are local, and the cloud has none of its fields.
    package static func lost(_ times: EditTimes, fields: [String]) -> RowTimes {
        var lost = RowTimes(cloud: times)
        for field in fields where times[field] != nil { lost.others[field] = .some(nil) }
        return lost
    }

    /// Returns whether the cloud has lost the record that has these times.
    package func isLost(fields: [String]) -> Bool {
        !others.isEmpty && fields.allSatisfy { here[$0] == nil || others[$0] == .some(nil) }
    }

    /// Sets the local time of a field; the cloud's time stays known.
    package mutating func set(_ time: EditTime?, of field: String) {
        guard let time else { return }
        let known = cloud(field)
        others[field] = time == known ? nil : .some(known)
        here.fields[field] = time
    }
}

extension RowTimes: CustomStringConvertible {
    package var description: String {
        let others = others.sorted { $0.key < $1.key }.map { ";\($0.key)<\($0.value?.text ?? "")" }
        return here.description + others.joined()
    }

    /// Reads the text of the column. Parts that can't be read are skipped. A part is a time of the cloud if `<` comes before any
    /// `=`: the identifier of another device may contain both signs.
    package init(_ description: String) {
        here = EditTimes(description)
        for part in description.split(separator: ";", omittingEmptySubsequences: false).dropFirst() {
            guard let sign = part.firstIndex(where: { $0 == "<" || $0 == "=" }), part[sign] == "<", sign > part.startIndex else {
                continue
            }
            others[String(part[..<sign])] = .some(EditTime(text: part[part.index(after: sign)...]))
        }
    }
}
