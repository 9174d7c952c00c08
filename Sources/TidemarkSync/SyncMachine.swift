import TidemarkModel

/// Decides what a synchronisation does next. It knows no stores and clouds: the reported outcomes and the time decide.
struct SyncMachine: Hashable, Sendable {
    enum Step: Hashable, Sendable {
        /// Check the account, make the zone.
        case setUp
        case importPage
        case exportBatch
        /// Nothing to do before this time; `nil` if nothing is to be done before something happens.
        case wait(until: Int64?)
        /// Nothing can be done until a person acts.
        case halt(ContainerEvent.Failure)
    }

    private(set) var isSetUp = false
    private(set) var importIsWanted = true
    private(set) var exportIsWanted = true
    private(set) var halted: ContainerEvent.Failure?
    private(set) var setUpBackoff = Self.backoff
    private(set) var importBackoff = Self.backoff
    private(set) var exportBackoff = Self.backoff
    /// The pauses before set-ups that a failed operation has asked for, until that operation succeeds.
    private var renewalBackoff = Self.backoff
    private var renewed: Operation?
    /// When a refused record may be tried again.
    private(set) var nextTry: Int64?
    /// When the changes may be sent that a save has left; `.min` for at once.
    private(set) var exportNotBefore = Int64.min
    /// When that save was; `.min` without one.
    private var savedAt = Int64.min
    private var lastWasImport = false
    /// Whether the zones that have changed are known, in this round of imports.
    private(set) var knowsChangedZones = false
    /// Whether the cloud has reported a change, or may have one, since it was asked last which zones have changed.
    private var changedSinceAsked = false
    /// Whether the cloud could not be reached the last time, and did not say for how long.
    private(set) var isUnreached = false
    /// How many batches in a row have sent nothing.
    private var emptyBatches = 0

    /// An operation of the engine with a cloud.
    enum Operation: Hashable, Sendable { case setUp, `import`, export }

    /// The number of batches in a row that may send nothing before there is a pause.
    static let emptyBatchLimit = 20
    /// How long it waits before it asks again for room in the cloud, in microseconds.
    static let roomPause: Int64 = 600_000_000

    static let backoff = Backoff(first: .seconds(1), longest: .seconds(300))

    func next(at now: Int64) -> Step {
        if let halted { return .halt(halted) }
        guard isSetUp else { return setUpBackoff.allows(now) ? .setUp : .wait(until: setUpBackoff.notBefore) }
        // No change waits longer than the longest pause: a time beyond it is from before the clock was set back.
        let isTimeToTry = nextTry.map { $0 <= now || $0 > now + ExportReaction.limitPause } ?? false
        let isDue = exportIsWanted || isTimeToTry
        // A clock that was set back since the save does not make the delay longer.
        let isDelayed = exportNotBefore > now && savedAt <= now
        let canExport = isDue && exportBackoff.allows(now) && !isDelayed
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
        if isDue, !exportBackoff.allows(now) || isDelayed {
            times.append(max(exportBackoff.allows(now) ? .min : exportBackoff.notBefore, isDelayed ? exportNotBefore : .min))
        }
        if let nextTry, !isTimeToTry { times.append(nextTry) }
        return .wait(until: times.min())
    }

    // Outcomes

    mutating func setUpSucceeded() {
        isSetUp = true
        setUpBackoff.succeed()
    }

    mutating func setUpFailed(at now: Int64, retryAfter: Duration?, random: Double) {
        isSetUp = false
        setUpBackoff.fail(at: now, asked: retryAfter, random: random)
    }

    /// Notes that an operation has failed in a way that only another set-up can mend. If it fails so again after the set-up, the next pause is
    /// longer.
    mutating func renewSetUp(for operation: Operation, at now: Int64, retryAfter: Duration?, random: Double) {
        isSetUp = false
        if renewed != operation { renewalBackoff = Self.backoff }
        renewed = operation
        renewalBackoff.fail(at: now, asked: retryAfter, random: random)
        setUpBackoff = renewalBackoff
    }

    /// Notes that an operation has succeeded.
    private mutating func endRenewals(of operation: Operation) {
        if renewed == operation { renewed = nil }
    }

    mutating func halt(_ failure: ContainerEvent.Failure) { halted = failure }

    /// Begins again: the account, or another obstacle, may have changed.
    mutating func begin() {
        renewed = nil
        renewAll()
    }

    /// Begins again, as the same attempt: an operation that fails as before has a longer pause.
    mutating func renewAll() {
        halted = nil
        isSetUp = false
        (setUpBackoff, importBackoff, exportBackoff) = (Self.backoff, Self.backoff, Self.backoff)
        (importIsWanted, exportIsWanted) = (true, true)
        exportNotBefore = .min
    }

    /// Notes that the cloud has reported a change. It can be reached, so the long waits for an unreachable cloud end.
    mutating func cloudNotified(at now: Int64) {
        wantImport()
        if isUnreached { hasten(at: now) }
        isUnreached = false
    }

    /// Notes that the network has changed: a cloud that could not be reached is tried again soon.
    mutating func networkChanged(at now: Int64) {
        guard isUnreached else { return }
        hasten(at: now)
    }

    /// Notes that an operation has failed, or the account could not be checked.
    ///
    /// - Parameter isUnreached: Whether the cloud could not be reached, and gave no time for the next try.
    mutating func failed(isUnreached: Bool) { self.isUnreached = isUnreached }

    /// Notes that the cloud has answered. If it was unreachable for this operation, the other operations that wait for it are tried soon.
    mutating func answered(_ operation: Operation, at now: Int64) {
        guard isUnreached else { return }
        let backoff =
            switch operation {
            case .setUp: setUpBackoff
            case .import: importBackoff
            case .export: exportBackoff
            }
        if backoff.failures > 0 {
            hasten(at: now)
        } else if failures > 0 {
            // The failed operation still waits: the next answer hastens it.
            return
        }
        isUnreached = false
    }

    /// A round of imports begins when the changed zones are known. It ends when they are fetched, or when one of them fails.
    mutating func noteChangedZones(areKnown: Bool) { knowsChangedZones = areKnown }

    /// Notes that the cloud is about to be asked which zones have changed. What it reports from now on takes another round.
    mutating func willAskForChangedZones() { changedSinceAsked = false }

    /// Notes that the cloud has changed, or may have.
    mutating func wantImport() { (importIsWanted, changedSinceAsked) = (true, true) }

    /// The number of failures since the last success.
    var failures: Int { setUpBackoff.failures + importBackoff.failures + exportBackoff.failures }

    /// Lets failed operations be tried again soon, before their time has come, but not sooner than the cloud has asked for.
    mutating func hasten(at now: Int64) {
        setUpBackoff.hasten(at: now)
        importBackoff.hasten(at: now)
        exportBackoff.hasten(at: now)
    }

    /// Notes that the store has changed, or may have.
    mutating func wantExport() {
        exportIsWanted = true
        exportNotBefore = .min
    }

    /// Notes that a program has saved. The changes are sent after a delay, so that the saves that follow go with them; saves in that time
    /// do not put it off further.
    mutating func saved(at now: Int64, delay: Duration) {
        guard !exportIsWanted else { return }
        exportIsWanted = true
        exportNotBefore = delay > .zero ? now + Int64(delay / .microseconds(1)) : .min
        savedAt = now
    }

    mutating func imported(moreComing: Bool) {
        importBackoff.succeed()
        endRenewals(of: .import)
        importIsWanted = moreComing || changedSinceAsked
        lastWasImport = true
    }

    mutating func importFailed(at now: Int64, retryAfter: Duration?, random: Double) {
        importBackoff.fail(at: now, asked: retryAfter, random: random)
        lastWasImport = true
    }

    /// Notes that a batch was sent, or that there was none.
    ///
    /// - Parameters:
    ///   - sent: How many changes the cloud has accepted.
    ///   - didWork: Whether there was anything to send.
    ///   - nextTry: When the first of the refused records may be tried again.
    ///   - random: Between 0 and 1, for the pause after too many batches that sent nothing.
    mutating func exported(sent: Int, didWork: Bool, nextTry: Int64?, at now: Int64, random: Double) {
        emptyBatches = didWork && sent == 0 ? emptyBatches + 1 : 0
        // Whatever the cause, batches that send nothing must not repeat without a pause.
        guard emptyBatches < Self.emptyBatchLimit else {
            exportBackoff.fail(at: now, asked: nil, random: random)
            lastWasImport = false
            return
        }
        // Without a sent change, the cloud was not asked.
        if sent > 0 {
            answered(.export, at: now)
            endRenewals(of: .export)
        }
        exportBackoff.succeed()
        exportIsWanted = didWork
        self.nextTry = nextTry
        lastWasImport = false
    }

    /// Notes that the account has no room for the changes that wait in bulk. The engine asks for room again later; edits made meanwhile are
    /// sent.
    mutating func exportLacksRoom(at now: Int64) {
        exportBackoff.succeed()
        exportIsWanted = false
        nextTry = now + Self.roomPause
        lastWasImport = false
    }

    mutating func exportFailed(at now: Int64, retryAfter: Duration?, random: Double) {
        emptyBatches = 0
        exportBackoff.fail(at: now, asked: retryAfter, random: random)
        lastWasImport = false
    }

    /// Whether there is nothing to do, now or later.
    var isIdle: Bool { isSetUp && !importIsWanted && !exportIsWanted }
}
