import Foundation
import Tidemark
import TidemarkModel

/// The examples of the articles, in functions, so that they compile and, where possible, run.
enum Guide {}

extension Guide {
    struct Destination: Record, Identifiable, Equatable {
        var id = UUID()
        var createdAt = Date()
        var caption: String
        var details = ""
        var image: Asset?
        var rating: Int?

        func validate() throws {
            if caption.allSatisfy(\.isWhitespace) { throw ValidationError("a destination needs a caption", field: "caption") }
        }

        func validateForUpdate(from previous: Destination) throws {
            if self == previous { throw ValidationError("nothing was changed") }
            try validate()
        }
    }

    struct Visit: Record, Identifiable {
        static let mergePolicy: MergePolicy? = .custom(.byField(["nights": nights], otherwise: .latestEdit))
        static let nights = MergePolicy.custom(
            MergeRule { conflict in
                guard case .int64(let mine) = conflict.local, case .int64(let theirs) = conflict.store else {
                    return conflict.local
                }
                return .int64(max(mine, theirs))
            })

        var id = UUID()
        var destination: Reference<Destination>
        var day = Date()
        var nights = 0
        var notes = ""
    }

    struct Tag: Record, Identifiable {
        static let uniqueKeys = [UniqueKey("word")]

        var id = UUID()
        var word: String
    }
}

// Reading records of an older version

extension Guide {
    struct Excursion: Record, Identifiable {
        static var prototype: Excursion? { Excursion(title: "") }
        static let formerFieldNames = ["title": ["name"]]

        var id = UUID()
        var title: String // was called `name`
        var stars = 3 // is new
    }
}
