import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    /// Returns the names of the records that a query finds, page by page.
    private static func found(
        _ query: CloudQuery, in database: any CloudDatabase, limit: Int? = nil
    ) async throws -> [String] {
        var (names, place): ([String], QueryContinuation?) = ([], nil)
        while true {
            let answer = try await database.query(query, in: zone, limit: limit, desiredKeys: [], continuation: place)
            if let limit { try expect(answer.records.count <= limit, "\(answer.records.count) records on a page of \(limit)") }
            names += answer.records.map(\.id.recordName)
            place = answer.continuation
            if place == nil { return names }
        }
    }

    private static func query(_ filters: CloudQuery.Filter..., sorts: [CloudQuery.Sort] = []) -> CloudQuery {
        CloudQuery(recordType: "Destination", filters: filters, sorts: sorts)
    }

    /// Saves twelve records with a number, a text, a list and a location.
    private static func places(_ subject: any Subject) async throws -> any CloudDatabase {
        let database = try await journal(subject)
        let operations = (0..<12).map { n in
            var fields: [String: CloudValue] = [
                "n": .int64(Int64(n % 4)),
                "caption": .string(["Fjord view", "snowy peak", "Fjord ferry", "calm lake"][n % 4] + " \(n)"),
                "tags": .list([.string("t\(n % 3)"), .string("all")], of: .string),
                "place": .location(Location(latitude: 60 + Double(n), longitude: 10)),
            ]
            if n % 5 == 0 { fields["n"] = nil }
            return RecordOperation(.create, record("p\(n < 10 ? "0" : "")\(n)", fields))
        }
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations))
        return database
    }

    private static func names(_ numbers: [Int]) -> [String] { numbers.map { "p\($0 < 10 ? "0" : "")\($0)" } }

    static let queries: [Check] = [
        Check("what is not marked can't be queried, sorted or searched, and the answer says so") { subject in
            let database = try await places(subject)
            func reason(_ query: CloudQuery) async throws -> String {
                let error = await failure {
                    try await database.query(query, in: zone, limit: nil, desiredKeys: nil, continuation: nil)
                }
                try expect(error == nil || error?.code == .invalidArguments, "\(String(describing: error))")
                return error?.reason ?? "found"
            }
            try equal(try await reason(query()), "Field 'recordName' is not marked queryable")
            try equal(try await reason(query(.init(.field("n"), .equals, .int64(1)))), "Field 'n' is not marked queryable")
            try await subject.index("recordName", of: "Destination")
            try equal(try await reason(query()), "found")
            try equal(try await reason(query(sorts: [.init(.field("n"))])), "Field 'n' is not marked sortable")
            try equal(
                try await reason(query(.init(.field("caption"), .containsAllTokens, .string("x")))),
                "Field 'caption' is not marked searchable")
            // Records from before the index are found, too.
            try await subject.index("n", of: "Destination")
            try equal(try await found(query(.init(.field("n"), .equals, .int64(3))), in: database), names([3, 7, 11]))
        },
        Check("each comparator finds what it says") { subject in
            let database = try await places(subject)
            for field in ["recordName", "n", "caption", "tags", "place"] { try await subject.index(field, of: "Destination") }
            let n = CloudQuery.Key.field("n")
            // 0, 5 and 10 have no number.
            let numbers: [Int: Int] = Dictionary(uniqueKeysWithValues: (0..<12).filter { $0 % 5 != 0 }.map { ($0, $0 % 4) })
            func having(_ test: (Int) -> Bool) -> [String] { names(numbers.filter { test($0.value) }.keys.sorted()) }
            func lacking(_ test: (Int) -> Bool) -> [String] { names((0..<12).filter { !(numbers[$0].map(test) ?? false) }) }
            func ask(
                _ key: CloudQuery.Key, _ comparator: CloudQuery.Comparator, _ value: CloudValue, distance: Double? = nil
            ) async throws -> [String] {
                try await found(query(.init(key, comparator, value, distance: distance)), in: database)
            }
            try equal(try await ask(n, .equals, .int64(2)), having { $0 == 2 })
            try equal(try await ask(n, .notEquals, .int64(2)), lacking { $0 == 2 })
            try equal(try await ask(n, .lessThan, .int64(2)), having { $0 < 2 })
            try equal(try await ask(n, .lessThanOrEquals, .int64(2)), having { $0 <= 2 })
            try equal(try await ask(n, .greaterThan, .int64(2)), having { $0 > 2 })
            try equal(try await ask(n, .greaterThanOrEquals, .int64(2)), having { $0 >= 2 })
            let some = CloudValue.list([.int64(1), .int64(3)], of: .int64)
            try equal(try await ask(n, .isIn, some), having { $0 == 1 || $0 == 3 })
            try equal(try await ask(n, .isNotIn, some), lacking { $0 == 1 || $0 == 3 })
            let caption = CloudQuery.Key.field("caption")
            try equal(try await ask(caption, .beginsWith, .string("Fjord")), names([0, 2, 4, 6, 8, 10]))
            try equal(try await ask(caption, .doesNotBeginWith, .string("Fjord")), names([1, 3, 5, 7, 9, 11]))
            try equal(try await ask(caption, .containsAllTokens, .string("ferry FJORD")), names([2, 6, 10]))
            try equal(try await ask(caption, .containsAnyTokens, .string("ferry lake")), names([2, 3, 6, 7, 10, 11]))
            let tags = CloudQuery.Key.field("tags")
            try equal(try await ask(tags, .listContains, .string("t1")), names([1, 4, 7, 10]))
            try equal(try await ask(tags, .listDoesNotContain, .string("t1")), names([0, 2, 3, 5, 6, 8, 9, 11]))
            let two = CloudValue.list([.string("t1"), .string("all")], of: .string)
            try equal(try await ask(tags, .listContainsAll, two), names([1, 4, 7, 10]))
            try equal(try await ask(tags, .listDoesNotContainAll, two), names([0, 2, 3, 5, 6, 8, 9, 11]))
            try equal(try await ask(tags, .listContainsAny, two), names(Array(0..<12)))
            try equal(
                try await ask(tags, .listContainsNone, .list([.string("t1"), .string("t2")], of: .string)), names([0, 3, 6, 9]))
            try equal(try await ask(tags, .listMemberBeginsWith, .string("al")), names(Array(0..<12)))
            try equal(try await ask(tags, .noListMemberBeginsWith, .string("t2")), names([0, 1, 3, 4, 6, 7, 9, 10]))
            // A degree of latitude is 111.2 km.
            try equal(
                try await ask(.field("place"), .near, .location(Location(latitude: 65, longitude: 10)), distance: 120_000),
                names([4, 5, 6]))
            try equal(try await ask(.recordName, .isIn, .list([.string("p03"), .string("x")], of: .string)), names([3]))
            try equal(try await ask(.recordName, .beginsWith, .string("p1")), names([10, 11]))
        },
        Check("an answer is sorted, and its pages miss nothing") { subject in
            let database = try await places(subject)
            for field in ["recordName", "n", "caption", "place"] { try await subject.index(field, of: "Destination") }
            let up = query(sorts: [.init(.field("n")), .init(.recordName, isAscending: false)])
            let wanted = names([10, 5, 0, 8, 4, 9, 1, 6, 2, 11, 7, 3])
            for limit in [nil, 1, 2, 5] as [Int?] { try equal(try await found(up, in: database, limit: limit), wanted) }
            let down = query(sorts: [.init(.field("n"), isAscending: false)])
            for limit in [nil, 1, 4] as [Int?] {
                try equal(try await found(down, in: database, limit: limit), names([3, 7, 11, 2, 6, 1, 9, 4, 8, 0, 5, 10]))
            }
            var near = CloudQuery.Sort(.field("place"))
            near.relativeLocation = Location(latitude: 66.4, longitude: 10)
            try equal(try await found(query(sorts: [near]), in: database, limit: 3).prefix(4).map(\.self), names([6, 7, 5, 8]))
            let page = try await database.query(up, in: zone, limit: 2, desiredKeys: nil, continuation: nil)
            try await refused(.invalidArguments) {
                try await database.query(query(), in: zone, limit: 2, desiredKeys: nil, continuation: page.continuation)
            }
            try await refused(.invalidArguments) {
                try await database.query(up, in: zone, limit: 2, desiredKeys: nil, continuation: QueryContinuation(rawValue: "x"))
            }
        },
    ]
}
