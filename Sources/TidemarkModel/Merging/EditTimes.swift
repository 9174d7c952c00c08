/// When the fields of a record were edited last: one time for most of them, and those of the others.
///
/// As text: `<microseconds>@<device>`, then for each other field `;<field>=<microseconds>@<device>`.
public struct EditTimes: Hashable, Sendable {
    /// That of fields which have none of their own.
    public var otherwise: EditTime?
    /// The times of fields that differ from ``otherwise``.
    public var fields: [String: EditTime]

    /// Makes times; without arguments, none is known.
    public init(otherwise: EditTime? = nil, fields: [String: EditTime] = [:]) {
        self.otherwise = otherwise
        self.fields = fields
    }

    /// When a field was edited; `nil` where that is not known.
    public subscript(field: String) -> EditTime? { fields[field] ?? otherwise }

    /// Those of a record's fields.
    public func times(of names: some Sequence<String>) -> [String: EditTime] {
        names.reduce(into: [:]) { $0[$1] = self[$1] }
    }

    /// The name under which the time of a record's last move to another zone stands among the fields.
    package static let move = "_zone"

    /// The latest of all.
    public var latest: Int64? { (Array(fields.values) + [otherwise].compactMap { $0 }).map(\.microseconds).max() }
}

extension EditTimes: LosslessStringConvertible {
    public var description: String {
        let others = fields.filter { $0.value != otherwise }.sorted { $0.key < $1.key }
        return ([otherwise?.text ?? ""] + others.map { "\($0.key)=\($0.value.text)" }).joined(separator: ";")
    }

    /// Parts that are no times are passed over: they come from other devices. No field's name has a `<`, which has a meaning in `RowTimes`.
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
