import Foundation
import TidemarkCloud
import TidemarkCloudEngine

/// Checks of the answers to requests in every ``CloudStorage``. A check throws where the storage is wrong.
package enum AnswerStorageContract {
    private static let (day, week): (Int64, Int64) = (86_400_000_000, 604_800_000_000)
    private static let start: Int64 = 1_700_000_000_000_000

    /// A user's answers, with the number that counts against the quota.
    private struct Answers {
        let storage: any CloudStorage
        let user: String

        /// Stores answers as the engine does: first those that have ended are removed, then the new one is stored.
        func keep(_ tokens: [String], at time: Int64) async throws {
            for token in tokens {
                try await storage.write(owners: [user]) { [user] rows throws(CloudError) in
                    _ = try rows.forgetAnswers(of: user, AnswerAge(at: time))
                    let answer = Data("answer to \(token)".utf8)
                    try rows.keep(answer, to: token, of: user, at: time)
                    try rows.addUsed(StoredAnswer.size(answer, token: token), by: user)
                }
            }
        }

        func kept(_ tokens: [String]) async throws -> [String] {
            try await storage.read { [user] rows throws(CloudError) in
                var kept: [String] = []
                for token in tokens where try rows.answer(to: token, of: user) != nil { kept.append(token) }
                return kept
            }
        }

        func requireCount(_ what: String) async throws {
            let (used, counted) = try await storage.read { [user] rows throws(CloudError) in
                (try rows.used(by: user), try rows.countUsed()[user] ?? 0)
            }
            try requireEqual(used, counted, what)
        }
    }

    private static func names(_ prefix: String, _ count: Int) -> [String] { (0..<count).map { "\(prefix)\($0)" } }

    /// All checks.
    package static let all: [StorageCheck<any CloudStorage>] = [
        StorageCheck("an answer expires after seven days, except a user's newest") { storage in
            let answers = Answers(storage: storage, user: "_a")
            let tokens = names("a", AnswerAge.newest + 10)
            try await answers.keep(tokens, at: start)
            try await answers.keep(["later"], at: start + week - day)
            try requireEqual(try await answers.kept(tokens), tokens, "after six days")
            try await answers.keep(["last"], at: start + week + day)
            let rest = Array(tokens.suffix(AnswerAge.newest - 1))
            try requireEqual(try await answers.kept(tokens + ["later", "last"]), rest + ["later", "last"], "after eight days")
            try await answers.requireCount("the bytes of what has ended")
        },
        StorageCheck("the newest answers stay wherever the clock is set") { storage in
            let answers = Answers(storage: storage, user: "_b")
            try await answers.keep(["first"], at: start)
            var (time, asked) = (start, ["first"])
            for (round, jump) in [3_650, -3_650, 20, -40, 3_650, -7_300].enumerated() {
                time += Int64(jump) * day
                let more = names("\(round)-", AnswerAge.newest - 1)
                try requireEqual(try await answers.kept([asked.last!]), [asked.last!], "the last answer, after \(jump) days")
                try await answers.keep(more, at: time)
                try requireEqual(try await answers.kept([asked.last!]), [asked.last!], "\(more.count) requests after it")
                asked += more
            }
        },
        StorageCheck("answers from a time when the clock was ahead stay, and a sweep corrects their times") { storage in
            let answers = Answers(storage: storage, user: "_c")
            try await answers.keep(["ahead"], at: start + 3_650 * day)
            let tokens = names("c", 3 * AnswerAge.newest)
            try await answers.keep(tokens, at: start)
            try requireEqual(try await answers.kept(["ahead"] + tokens), ["ahead"] + tokens, "what is kept")
            let age = AnswerAge(at: start + day)
            try await storage.write(owners: ["_c"]) { rows throws(CloudError) in
                guard try rows.usersWithAnswers(age, limit: 100).contains("_c") else { return }
                try rows.setBackAnswers(of: "_c", age)
            }
            let rest = try await storage.read { rows throws(CloudError) in try rows.usersWithAnswers(age, limit: 100) }
            try require(!rest.contains("_c"), "the sweep has to go on")
            try await answers.keep(["last"], at: start + day + week + day)
            try requireEqual(
                try await answers.kept(["ahead"] + tokens + ["last"]), tokens.suffix(AnswerAge.newest) + ["last"], "what is new")
            try await answers.requireCount("the bytes of what has ended")
        },
        StorageCheck("no answer of a removed account stays") { storage in
            let answers = Answers(storage: storage, user: "_g")
            try await answers.keep(["one", "two"], at: start)
            try await storage.write(owners: ["_g"]) { rows throws(CloudError) in try rows.removeAnswers(of: "_g") }
            try requireEqual(try await answers.kept(["one", "two"]), [], "what is kept")
            try await answers.requireCount("the bytes of what was removed")
            let used = try await storage.read { rows throws(CloudError) in try rows.used(by: "_g") }
            try requireEqual(used, 0, "bytes")
        },
        StorageCheck("a sweep finds only the users whose answers have expired") { storage in
            let age = AnswerAge(at: start + 2 * week)
            try await Answers(storage: storage, user: "_d").keep(names("d", AnswerAge.newest), at: start)
            try await Answers(storage: storage, user: "_e").keep(names("e", AnswerAge.newest + 1), at: start)
            try await Answers(storage: storage, user: "_f").keep(names("f", AnswerAge.newest + 1), at: start + 2 * week)
            func users() async throws -> [String] {
                try await storage.read { rows throws(CloudError) in try rows.usersWithAnswers(age, limit: 100) }
            }
            try requireEqual(try await users(), ["_e"], "users")
            let count = try await storage.write(owners: ["_e"]) { rows throws(CloudError) in
                try rows.forgetAnswers(of: "_e", age)
            }
            try requireEqual(count, 1, "what was removed")
            try requireEqual(try await users(), [], "users after the sweep")
        },
    ]
}
