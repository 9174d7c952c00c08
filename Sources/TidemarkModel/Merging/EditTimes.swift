/// The times of the last edits to the fields of a record: one common time, and the times of fields that differ from it.
///
/// The text form is `<microseconds>@<device>` for the common time, then `;<field>=<microseconds>@<device>` for each other field.
public struct EditTimes: Hashable, Sendable {
    /// The time of the fields that are not in ``fields``.
    public var otherwise: EditTime?
    /// The times of fields that differ from ``otherwise``.
    public var fields: [String: EditTime]

    /// Makes times. Without arguments, no time is known.
    public init(otherwise: EditTime? = nil, fields: [String: EditTime] = [:]) {
        self.otherwise = otherwise
        self.fields = fields
    }

    /// The time of the last edit to a field; `nil` if it is not known.
    public subscript(field: String) -> EditTime? { fields[field] ?? otherwise }

    /// The known times of the named fields.
    public func times(of names: some Sequence<String>) -> [String: EditTime] {
        names.reduce(into: [:]) { $0[$1] = self[$1] }
    }

    /// The key in ``fields`` for the time of the record's last move to another zone.
    package static let move = "_zone"

    /// The latest of all times; microseconds since 1970 UTC. `nil` if no time is known.
    public var latest: Int64? { (Array(fields.values) + [otherwise].compactMap { $0 }).map(\.microseconds).max() }
}

extension EditTimes: LosslessStringConvertible {
    public var description: String {
        let others = fields.filter { $0.value != otherwise }.sorted { $0.key < $1.key }
        return ([otherwise?.text ?? ""] + others.map { "\($0.key)=\($0.value.text)" }).joined(separator: ";")
    }

    /// Reads the text form. Parts that can't be read are skipped, since the text can come from another device. A part whose first
    /// sign is `<` is skipped too: `RowTimes` reads it, and no field's name contains that sign.
    public init(_ description: String) {
        let parts = description.split(separator: ";", omittingEmptySubsequences: false)
        otherwise = parts.first.flatMap { EditTime(text: $0) }
        fields = parts.dropFirst().reduce(into: [:]) { fields, part in
            guard let sign = part.firstIndex(where: { $0 == "<" || $0 == "=" }), part[sign] == "=", sign > part.startIndex else {
                return
            }
            fields[String(part[..<sign])] = EditTime(text: part[part.index(after: sign)...])
        }
    }
}

extension EditTime {
    /// `<microseconds>@<device>`.
    package var text: String { "\(microseconds)@\(device)" }

    package init?(text: Substring) {
        guard let sign = text.firstIndex(of: "@"), let microseconds = Int64(text[..<sign]) else { return nil }
        self.init(microseconds: microseconds, device: String(text[text.index(after: sign)...]))
    }
}
