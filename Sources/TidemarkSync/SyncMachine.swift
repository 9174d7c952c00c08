import TidemarkModel

/// Decides what a synchronisation does next. It knows nothing of stores and clouds: what it is told, and the time, decide.
struct SyncMachine: Hashable, Sendable {
    enum Step: Hashable, Sendable {
        /// Look at the account, make the zone.
        case setUp
        case importPage
        case exportBatch
        /// Nothing to do before a time; `nil`: before something happens.
        case wait(until: Int64?)
        /// Nothing can be done until a person has done something.
        case halt(ContainerEvent.Failure)
    }

    private(set) var isSetUp = false
    private(set) var importIsWanted = true
    private(set) var exportIsWanted = true
    private(set) var halted: ContainerEvent.Failure?
    private(set) var setUpBackoff = Self.backoff
    private(set) var importBackoff = Self.backoff
    private(set) var exportBackoff = Self.backoff
    /// A record that was refused may be tried again then.
    private(set) var nextTry: Int64?
    private var lastWasImport = false

    static let backoff = Backoff(first: .seconds(1), longest: .seconds(300))

    func next(at now: Int64) -> Step {
        if let halted { return .halt(halted) }
        guard isSetUp else { return setUpBackoff.allows(now) ? .setUp : .wait(until: setUpBackoff.notBefore) }
        let isDue = exportIsWanted || nextTry.map { $0 <= now } ?? false
        let canExport = isDue && exportBackoff.allows(now)
        let canImport = importIsWanted && importBackoff.allows(now)
        switch (canImport, canExport) {
        // By turns, so that neither waits for the end of the other.
        case (true, true): return lastWasImport ? .exportBatch : .importPage
        case (true, false): return .importPage
        case (false, true): return .exportBatch
        case (false, false): break
        }
        var times: [Int64] = []
        if importIsWanted, !importBackoff.allows(now) { times.append(importBackoff.notBefore) }
        if isDue, !exportBackoff.allows(now) { times.append(exportBackoff.notBefore) }
        if let nextTry, nextTry > now { times.append(nextTry) }
        return .wait(until: times.min())
    }

    // What has happened

    mutating func setUpSucceeded() {
        isSetUp = true
        setUpBackoff.succeed()
    }

    mutating func setUpFailed(at now: Int64, retryAfter: Duration?, random: Double) {
        isSetUp = false
        setUpBackoff.fail(at: now, asked: retryAfter, random: random)
    }

    mutating func halt(_ failure: ContainerEvent.Failure) { halted = failure }

    /// The account, or something else that stood in the way, may have changed.
    mutating func begin() {
        halted = nil
        isSetUp = false
        (setUpBackoff, importBackoff, exportBackoff) = (Self.backoff, Self.backoff, Self.backoff)
        (importIsWanted, exportIsWanted) = (true, true)
    }

    /// The cloud has changed, or may have.
    mutating func wantImport() { importIsWanted = true }

    /// How often something has failed since it succeeded last.
    var failures: Int { setUpBackoff.failures + importBackoff.failures + exportBackoff.failures }

    /// What has failed is tried again soon, and not only when its time has come; but not sooner than the cloud has asked for.
    mutating func hasten(at now: Int64) {
        setUpBackoff.hasten(at: now)
        importBackoff.hasten(at: now)
        exportBackoff.hasten(at: now)
    }

    /// The store has changed, or may have.
    mutating func wantExport() { exportIsWanted = true }

    mutating func imported(moreComing: Bool) {
        importBackoff.succeed()
        importIsWanted = moreComing
        lastWasImport = true
    }

    mutating func importFailed(at now: Int64, retryAfter: Duration?, random: Double) {
        importBackoff.fail(at: now, asked: retryAfter, random: random)
        lastWasImport = true
    }

    /// - Parameters:
    ///   - didWork: Whether there was anything to send.
    ///   - nextTry: When the first of the refused records may be tried again.
    mutating func exported(didWork: Bool, nextTry: Int64?) {
        exportBackoff.succeed()
        exportIsWanted = didWork
        self.nextTry = nextTry
        lastWasImport = false
    }

    mutating func exportFailed(at now: Int64, retryAfter: Duration?, random: Double) {
        exportBackoff.fail(at: now, asked: retryAfter, random: random)
        lastWasImport = false
    }

    /// Whether it has nothing to do now and later.
    var isIdle: Bool { isSetUp && !importIsWanted && !exportIsWanted }
}
