import TidemarkCloudEngine

/// The checks of what every ``SignInRateStorage`` does.
package enum SignInRateStorageContract {
    /// Makes another server's storage of the same counts, which are all 0 at first; for a storage of one process, the same
    /// storage.
    package struct Subject: Sendable {
        let storage: @Sendable () async throws -> any SignInRateStorage
        /// Makes time pass for a storage that has a clock of its own.
        let pass: @Sendable (_ seconds: Double) async throws -> Void

        package init(
            _ storage: @escaping @Sendable () async throws -> any SignInRateStorage,
            pass: @escaping @Sendable (_ seconds: Double) async throws -> Void = { _ in }
        ) {
            (self.storage, self.pass) = (storage, pass)
        }
    }

    /// Two servers, and the time that has passed since a test began.
    private struct Servers {
        let subject: Subject
        let here, there: any SignInRateStorage
        let now = Shared(1_000.0)

        init(_ subject: Subject) async throws {
            self.subject = subject
            (here, there) = (try await subject.storage(), try await subject.storage())
        }

        func pass(_ seconds: Double) async throws {
            try await subject.pass(seconds)
            now.change { $0 += seconds }
        }

        /// Counts attempts, alternating between the servers.
        ///
        /// - Returns: How many of the attempts are admitted.
        func admitted(_ count: Int, _ names: SignInRate...) async throws -> Int {
            var admitted = 0
            for number in 0..<count {
                let wait = try await (number % 2 == 0 ? here : there).wait(for: names, at: now.value)
                if let wait { try require(wait > 0 && wait < 1.01 * period, "a wait of \(wait) seconds") } else { admitted += 1 }
            }
            return admitted
        }
    }

    /// Seconds until one more attempt is admitted: so many that a slow machine does not reach them.
    private static let period = 100_000.0

    private static func rate(_ name: String, kind: String = "pair", burst: Double = 6) -> SignInRate {
        SignInRate(kind, name, perSecond: 1 / period, burst: burst)
    }

    /// All checks.
    package static let checks: [StorageCheck<Subject>] = [
        StorageCheck("a burst of attempts is admitted at once, then one after each period") { subject in
            let servers = try await Servers(subject)
            try requireEqual(try await servers.admitted(10, rate("anna\0")), 6, "at once")
            for _ in 0..<2 {
                try await servers.pass(1.01 * period)
                try requireEqual(try await servers.admitted(3, rate("anna\0")), 1, "after the time of one")
            }
            // However long nothing is counted, the allowance is no greater than at first.
            try await servers.pass(100 * period)
            try requireEqual(try await servers.admitted(10, rate("anna\0")), 6, "after a rest")
        },
        StorageCheck("of simultaneous attempts, at any server, only the allowed number is admitted") { subject in
            let servers = try await Servers(subject)
            let waits = try await withThrowingTaskGroup(of: Double?.self) { group in
                for number in 0..<20 {
                    let (storage, now) = (number % 2 == 0 ? servers.here : servers.there, servers.now.value)
                    group.addTask { try await storage.wait(for: [rate("anna")], at: now) }
                }
                return try await group.reduce(into: [Double?]()) { $0.append($1) }
            }
            try requireEqual(waits.count { $0 == nil }, 6, "of twenty")
        },
        StorageCheck("the wait lasts until one more attempt is admitted") { subject in
            let servers = try await Servers(subject)
            try requireEqual(try await servers.admitted(1, rate("anna", burst: 1)), 1, "the first")
            try await servers.pass(0.75 * period)
            let wait = try await servers.here.wait(for: [rate("anna", burst: 1)], at: servers.now.value) ?? 0
            // The clock of a storage goes on meanwhile.
            try require(wait > 0.24 * period && wait <= 0.26 * period, "a wait of \(wait) seconds")
            try await servers.pass(wait + 1)
            try requireEqual(try await servers.admitted(2, rate("anna", burst: 1)), 1, "after the wait")
        },
        StorageCheck("names are counted separately, and so are kinds") { subject in
            let servers = try await Servers(subject)
            try requireEqual(try await servers.admitted(9, rate("a")), 6, "one")
            try requireEqual(try await servers.admitted(9, rate("b")), 6, "another")
            try requireEqual(try await servers.admitted(9, rate("a", kind: "address", burst: 2)), 2, "another kind")
            try requireEqual(try await servers.admitted(9, rate("", kind: "network")), 6, "an empty name")
        },
        StorageCheck("several names are counted in order, up to the first with too many attempts") { subject in
            let servers = try await Servers(subject)
            let (few, many) = (rate("few", burst: 2), rate("many"))
            // The second name of each of four attempts: two go on, and two do not.
            try requireEqual(try await servers.admitted(4, many, few), 2, "by both")
            try requireEqual(try await servers.admitted(9, many), 2, "what is left of the first")
            let other = rate("other")
            try requireEqual(try await servers.admitted(5, few, other), 0, "by the first")
            try requireEqual(try await servers.admitted(9, other), 6, "what was not counted")
        },
        StorageCheck("a rate of zero means no limit, and so does an attempt without names") { subject in
            let servers = try await Servers(subject)
            let free = SignInRate("pair", "x", perSecond: 0, burst: 0)
            try requireEqual(try await servers.admitted(9, free), 9, "without a limit")
            try requireEqual(try await servers.admitted(9), 9, "without a name")
            try requireEqual(try await servers.admitted(3, free, rate("y", burst: 0)), 1, "one at the least")
        },
    ]
}
