import Foundation
import Tidemark

/// A word by which stops are found again. Two devices that make the same one end with one.
public struct Tag: Record, Identifiable, Hashable {
    public var id = UUID()
    public var name: String

    public init(_ name: String) { self.name = name }

    public static var uniqueKeys: [UniqueKey] { [UniqueKey("name")] }
    public static let stops = ToMany<Tag, Stop>(by: \.tags, sortedBy: [.descending(\.arrival)])

    public func validate() throws { try name.mustNotBeBlank("Ein Schlagwort hat mindestens einen Buchstaben.", field: "name") }
}
