import Foundation
import TidemarkModel
import TidemarkSync

/// Remedies, as whole commands, for a field that has one type in a container and another one in the cloud.
struct FieldRemedies {
    /// The container, as the person has named it.
    private let path: String
    /// The container in the cloud.
    private let cloudContainer: String?

    init(path: String, cloudContainer: String?) {
        (self.path, self.cloudContainer) = (path, cloudContainer)
    }

    /// Puts the names of the containers into the commands of a text from the cloud.
    func filledIn(_ text: String) -> String {
        let named = text.replacing("<path>", with: Wording.shellWord(path))
        return cloudContainer.map { named.replacing("<id>", with: Wording.shellWord($0)) } ?? named
    }

    /// The lines about a field, the first one without a command.
    func lines(_ conflict: FieldTypeConflict, of type: String) -> [String] {
        let named = "\(Wording.shellWord(path)) --type \(type) \(conflict.field)"
        let canConvert = Self.converts(conflict)
        let ways = canConvert ? "give it the cloud's type, or another name" : "give it another name"
        var lines = ["\(type).\(conflict.field) is \(conflict.here) here and \(conflict.cloud) in the cloud: \(ways)"]
        if canConvert { lines.append("  tidemark schema retype \(named) \(Wording.shellWord("\(conflict.cloud)"))") }
        lines.append("  tidemark schema rename \(named) <name>")
        lines.append("  tidemark sync \(Wording.shellWord(path))   (brings the cloud's values)")
        return lines
    }

    /// Whether values of the container's type can be converted to the cloud's type.
    static func converts(_ conflict: FieldTypeConflict) -> Bool {
        guard let here = RecordTypeSchema.Field(name: conflict.field, typeName: conflict.here) else { return false }
        let there = RecordTypeSchema.Field(name: conflict.field, type: conflict.cloud)
        return FieldConversion(from: here, to: there) != nil
    }

    /// The sentences of a text, each with the mark that ends it.
    static func sentences(_ text: String) -> [String] {
        var sentences: [String] = []
        for part in text.components(separatedBy: ". ") {
            if let last = sentences.last, part.first?.isUppercase != true {
                sentences[sentences.count - 1] = "\(last). \(part)"
            } else {
                sentences.append(part)
            }
        }
        return sentences.enumerated().map { index, part in index < sentences.count - 1 ? "\(part)." : part }
    }
}

/// A field whose values in the cloud the container lacks, as the tool prints it.
struct LeftField: Encodable {
    let type, field: String
    /// The field's type in the container; `nil` if the container has no such field.
    let here: String?
    let cloud: String
    /// The number of records that have such a value.
    let records: Int

    var text: String {
        let none = "the container has no field of this name; in the cloud it is \(cloud)"
        let why = here.map { "it is \($0) here and \(cloud) in the cloud" } ?? none
        return "left in the cloud: \(type).\(field) of \(Wording.count(records, "record")): \(why)"
    }
}

/// A field that was renamed, dropped or given another type in the container, whose values stay in the cloud, as the tool prints it.
struct IgnoredField: Encodable {
    let type, field: String
    /// The number of records whose value the cloud had at the time of the change; `nil` if it was not counted.
    let records: Int?

    /// The field's name for people, which `ignoredFields` uses, too.
    var name: String { "\(type).\(field)" }

    var text: String { records.map { "\(name) (\(Wording.count($0, "record")) at that time)" } ?? name }
}
