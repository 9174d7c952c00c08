import TidemarkModel
import TidemarkSQLite

/// When the fields of a row were edited: what its `_edited` tells.
///
/// Mostly that is what the cloud has. Of fields that a merge has left as they are here, it tells both: `;<field>=<time>` that from here, as
/// ``EditTimes`` reads it, and `;<field><<time>` that which the cloud has, or nothing behind the sign where it has none.
struct RowTimes: Equatable {
    /// As they are to be sent.
    private(set) var here: EditTimes
    /// Those that the cloud has otherwise.
    private var others: [String: EditTime?] = [:]

    init(cloud: EditTimes) { here = cloud }

    /// As the cloud has it.
    func cloud(_ field: String) -> EditTime? { others[field] ?? here[field] }

    /// Whether the record was moved here, and the cloud does not know of it.
    var isMoved: Bool { others.keys.contains(EditTimes.move) }

    /// Sets the time from here.
    mutating func set(_ time: EditTime?, of field: String) {
        guard let time else { return }
        let known = cloud(field)
        others[field] = time == known ? nil : .some(known)
        here.fields[field] = time
    }
}

extension RowTimes: CustomStringConvertible {
    var description: String {
        let others = others.sorted { $0.key < $1.key }.map { ";\($0.key)<\($0.value?.text ?? "")" }
        return here.description + others.joined()
    }

    /// Parts that are no times are passed over.
    init(_ description: String) {
        here = EditTimes(description)
        for part in description.split(separator: ";").dropFirst(description.hasPrefix(";") ? 0 : 1) {
            guard let sign = part.firstIndex(of: "<"), sign > part.startIndex else { continue }
            others[String(part[..<sign])] = .some(EditTime(text: part[part.index(after: sign)...]))
        }
    }
}
