import Foundation
import Tidemark

/// What was written on a day of a trip.
public struct DiaryEntry: Record, Identifiable, Equatable {
    public var id = UUID()
    public var stop: Reference<Stop>
    public var day: Date
    public var heading: String
    public var text: String

    public init(at stop: Stop, on day: Date, heading: String, text: String) {
        self.stop = Reference(stop)
        self.day = day
        self.heading = heading
        self.text = text
    }

    public static var relationships: [Relationship<DiaryEntry>] { [.owned(by: \.stop)] }
    public static var indexes: [RecordIndex<DiaryEntry>] { [.on(\.day), .fullText(\.heading, \.text, language: "de")] }
    /// Of two people who write at once, the later one has the say, and not the one whose device synchronises last.
    public static var mergePolicy: MergePolicy? { .latestEdit }

    public func validate() throws {
        try text.mustNotBeBlank("Der Eintrag ist leer.", field: "text")
    }

    public func validateForUpdate(from previous: DiaryEntry) throws {
        if self == previous { throw ValidationError("Es hat sich nichts geändert.") }
        try validate()
    }
}
