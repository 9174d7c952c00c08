/// Finds the name that a misspelt name may stand for.
package enum Suggestion {
    /// Returns the name that is nearest to a text; `nil` if no name is near. A name is near if at most two letters have to be
    /// added, removed, replaced or exchanged; for a text of less than five letters, at most one.
    package static func nearest(to text: String, among names: some Sequence<String>, limit: Int = 2) -> String? {
        let limit = text.count < 5 ? 1 : limit
        let ranked = names.filter { $0 != text }
            .map { (name: $0, distance: distance(Array(text.lowercased()), Array($0.lowercased()))) }
        return ranked.filter { $0.distance <= limit && $0.distance < $0.name.count }.min { $0.distance < $1.distance }?.name
    }

    /// `; did you mean 'name'?` for the nearest name, or nothing.
    package static func question(_ text: String, among names: some Sequence<String>) -> String {
        nearest(to: text, among: names).map { "; did you mean '\($0)'?" } ?? ""
    }

    /// The number of letters to add, remove, replace or exchange with their neighbours.
    private static func distance(_ one: [Character], _ other: [Character]) -> Int {
        guard one.count < 64, other.count < 64 else { return .max }
        var rows = [Array(0...other.count)]
        for i in 1..<(one.count + 1) {
            var row = [i]
            for j in 1..<(other.count + 1) {
                var best = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1))
                if i > 1, j > 1, one[i - 1] == other[j - 2], one[i - 2] == other[j - 1] {
                    best = min(best, rows[i - 2][j - 2] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[one.count][other.count]
    }
}
