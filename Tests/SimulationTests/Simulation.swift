import Foundation
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// One run: devices edit, synchronise, die and begin again, in an order that follows from a seed, on virtual time; then all of them come
/// to rest, and checkers look at the stores and the cloud.
///
/// One thing happens at a time: the simulation waits for each step, and what happens in the middle of one, it is asked for.
actor Simulation {
    private let time = VirtualTime()
    private var random: SeededRandom
    let plan: SimulationPlan
    private let folder: URL
    private var devices: [SimulatedDevice] = []
    private var cloud: (any CloudDatabase)!
    private(set) var history: EditHistory
    private var log: [String] = []
    private var isEnding = false
    private static let zone = CloudZoneID(SyncConfiguration().zoneName)
    private static let deviceCount = 3

    struct Outcome: Sendable {
        var log: [String]
        /// What is wrong.
        var failures: [String]
        /// Of the log: equal for equal runs.
        var digest: UInt64 {
            log.reduce(0xcbf2_9ce4_8422_2325) { digest, line in
                line.utf8.reduce(digest) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            }
        }
    }

    /// A failure of the run itself.
    struct Failure: Error { let reason: String }

    private init(_ seed: UInt64) {
        random = SeededRandom(seed)
        plan = SimulationPlan(&random, devices: Self.deviceCount)
        folder = ContainerTemplate.scratch.appendingPathComponent("run-\(seed)-\(UUID().uuidString)", isDirectory: true)
        history = EditHistory(devices: Self.deviceCount)
    }

    /// Runs a seed.
    static func run(_ seed: UInt64, template: ContainerTemplate) async -> Outcome {
        let simulation = Simulation(seed)
        let outcome = await simulation.run(template)
        try? FileManager.default.removeItem(at: simulation.folder)
        return outcome
    }

    private func run(_ template: ContainerTemplate) async -> Outcome {
        note(plan.description)
        do {
            try await open(template)
            for _ in 0..<plan.actions { try await act() }
            try await end()
            let failures = try await check()
            devices = []
            return Outcome(log: log, failures: failures)
        } catch {
            devices = []
            return Outcome(log: log, failures: ["the run failed: \(error)"])
        }
    }

    func note(_ line: String) { log.append(line) }

    // The world

    private func open(_ template: ContainerTemplate) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let time = time
        let embedded = try EmbeddedCloud(inMemoryBeside: folder.appendingPathComponent("cloud"), now: { time.now })
        let account = try await embedded.addAccount("anna@example.org")
        let database = try embedded.database(.private, of: "iCloud.org.example.simulation", account: account.id)
        cloud = database
        var limits = CloudLimits()
        limits.operationsPerRequest = plan.operationsPerRequest
        let page = plan.changesPerPage
        for number in 0..<Self.deviceCount {
            devices.append(
                try SimulatedDevice(
                    number, in: folder, template: template, time: time, lead: plan.leads[number], seed: random.next(),
                    policy: plan.policy
                ) { [unowned self] kill, faults in
                    let observed = ObservedDatabase(base: database, device: number, kill: kill, simulation: self)
                    let faulty = FaultyDatabase(
                        observed, plan: faults, sleep: { time.advance(by: Int64($0 / .microseconds(1))) })
                    let database = SimulatedDatabase(
                        base: faulty, device: number, kill: kill, limits: limits, page: page, simulation: self)
                    return (database, faulty)
                })
        }
        if plan.faultRate > 0 { for device in devices { device.faultRates = FaultPlan.all(rate: plan.faultRate, seed: 0).rates } }
    }

    private func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    private func act() async throws {
        let device = devices[Int.random(in: 0..<devices.count, using: &random)]
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: try await edit(device)
        case 30..<75: try await step(device)
        case 75..<87: try await pass(device)
        case 87..<90:
            let rate = chance(2) ? 0 : plan.faultRate
            device.faultRates = FaultPlan.all(rate: rate, seed: 0).rates
            note("d\(device.number) faults \(rate)")
        case 90..<97:
            let moments = Int.random(in: 1...25, using: &random)
            device.kill.arm(moments)
            note("d\(device.number) dies after \(moments)")
        default: try restart(device)
        }
    }

    /// Lets time pass: a little, or until a device has something to do again.
    private func pass(_ device: SimulatedDevice) async throws {
        if chance(2) {
            time.advance(by: Int64.random(in: 0...2_000_000, using: &random))
        } else if let next = await device.engine.nextStep {
            time.advance(by: next - device.lead - time.now)
        } else {
            time.advance(by: Int64.random(in: 0...60_000_000, using: &random))
        }
        note("time \(time.now)")
        // It has looked at its clock.
        if device.kill.isDead { try restart(device) }
    }

    private func restart(_ device: SimulatedDevice) throws {
        guard !device.isBusy else { return }
        try look(device)
        try device.restart()
        note("d\(device.number) begins again")
    }

    /// One step of an engine; `false` when there was nothing to do.
    @discardableResult
    private func step(_ device: SimulatedDevice, depth: Int = 0) async throws -> Bool {
        guard !device.isBusy else { return false }
        device.isBusy = true
        defer { device.isBusy = false }
        let engine = device.engine
        let kill = device.kill
        if chance(2) { await engine.look() }
        var didWork = false
        do {
            didWork = try await engine.step()
        } catch {
            // What a dead process still does is of no interest.
            guard kill.isDead else { throw error }
        }
        note("d\(device.number) step \(didWork)")
        if kill.isDead {
            try device.restart()
            note("d\(device.number) has died and begins again")
        }
        return didWork
    }

    // Editing

    private var nextID = 0

    /// Saves or deletes records, several at once now and then.
    private func edit(_ device: SimulatedDevice) async throws {
        try look(device)
        let before = try device.rows()
        let count = chance(4) ? Int.random(in: 1...plan.records.count, using: &random) : 1
        let edits = plan.records.shuffled(using: &random).prefix(count).map { draw($0) }
        let outcome = try await device.store.save(
            edits.map(\.edit), schemas: edits.compactMap(\.schema), blobs: [], author: TransactionAuthor("test", origin: .save),
            policy: { _ in .mergeByPropertyObjectTrump }, check: { _ in })
        guard let transaction = outcome.transaction else { return }
        let time = try device.transactionTime(transaction)
        let after = try device.rows()
        for (id, edit, _) in edits {
            let name = edit.record.name
            func values(_ rows: [SimulatedDevice.StoredRow]) -> [String: String]? { rows.first { $0.name == name }?.values }
            let (old, new) = (values(before), values(after))
            guard edit.values != nil else {
                guard new == nil else { throw Failure(reason: "the record \(name) is there after it was deleted") }
                guard old != nil else { continue }
                history.edit(id, name, by: device.number, fields: nil, state: [:], time: time)
                note("d\(device.number) e\(id) deletes \(name)")
                continue
            }
            guard let new else { throw Failure(reason: "the record \(name) is not there after it was saved") }
            guard old != new else { continue }
            // What was without a value and stays so is no edit.
            let changed = edit.fields.filter { old?[$0] != new[$0] }
            history.edit(
                id, name, by: device.number, fields: changed.reduce(into: [:]) { $0[$1] = .some(new[$1]) }, state: new, time: time
            )
            note("d\(device.number) e\(id) saves \(name) \(changed.sorted()) -> \(Self.text(new))")
        }
    }

    /// An edit of a record, as chance has it.
    private func draw(_ name: String) -> (id: Int, edit: RecordEdit, schema: RecordTypeSchema?) {
        let record = RecordName(type: plan.types[name]!, name: name)
        nextID += 1
        if plan.deletions > 0, chance(plan.deletions) {
            return (nextID, RecordEdit(record: record, base: .any, values: nil, fields: []), nil)
        }
        var values: [String: FieldValue?] = [:]
        for field in ["a", "b", "c"] where chance(2) {
            // Without a value, now and then.
            let value: FieldValue = field == "b" ? .int64(Int64(nextID)) : .string("e\(nextID)")
            values[field] = .some(chance(5) ? nil : value)
        }
        if plan.hasReferences, chance(3) {
            let target = plan.records.randomElement(using: &random)!
            values["parent"] = .some(chance(4) || target == name ? nil : .reference(target))
        }
        if plan.isStamped { values["s"] = .some(.string("e\(nextID)")) }
        if values.isEmpty { values["a"] = .some(.string("e\(nextID)")) }
        let types: [String: FieldType] = ["a": .string, "b": .int64, "c": .string, "s": .string, "parent": .reference]
        let schema = RecordTypeSchema(name: record.type, fields: values.keys.sorted().map { .init(name: $0, type: types[$0]!) })
        let edit = RecordEdit(record: record, base: .any, values: values.compactMapValues { $0 }, fields: Set(values.keys))
        return (nextID, edit, schema)
    }

    /// Takes note of what a device knows by now.
    private func look(_ device: SimulatedDevice) throws {
        let tags = try device.rows().reduce(into: [:]) { $0[$1.name] = $1.tag }
        history.look(device.number, token: try device.token(), tags: tags, putOff: try device.putOff())
    }

    // What happens in the middle of a step

    func interrupt(_ number: Int) async {
        guard !isEnding, chance(4) else { return }
        do {
            let device = devices[number]
            // What is edited in the container of a dead process nobody will see again.
            if !device.kill.isDead, chance(2) {
                try await edit(device)
            } else {
                try await step(devices[Int.random(in: 0..<devices.count, using: &random)])
            }
        } catch {
            interruption = error
        }
    }

    private var interruption: (any Error)?

    /// What the cloud says to a request that it does not do, now and then.
    func refusal(of request: ModifyRecordsRequest) -> CloudError? {
        guard !isEnding, plan.faultRate > 0, chance(12) else { return nil }
        switch Int.random(in: 0..<3, using: &random) {
        case 0 where request.operations.count > 1: return CloudError(.limitExceeded, "simulated: too much at once")
        case 1: return CloudError(.quotaExceeded, "simulated: no room")
        default: return CloudError(.internalError, "simulated: a fault of the cloud's")
        }
    }

    func willModify(_ request: ModifyRecordsRequest, by number: Int) async {
        do {
            try look(devices[number])
            history.send(request, by: number)
        } catch {
            interruption = error
        }
        note("d\(number) sends \(request.operations.map(Self.text).joined(separator: ", "))")
        await interrupt(number)
    }

    func didModify(_ request: ModifyRecordsRequest, _ outcomes: [RecordOutcome], by number: Int) async {
        note("d\(number) is answered \(outcomes.map(Self.text).joined(separator: ", "))")
        await interrupt(number)
    }

    func didCommit(_ request: ModifyRecordsRequest, _ outcomes: [RecordOutcome], by number: Int) {
        history.commit(request, outcomes)
        note("the cloud did for d\(number) \(outcomes.map(Self.text).joined(separator: ", "))")
    }

    func willAnswer(_ changes: ZoneChanges, since token: CloudToken?) { history.answer(changes, since: token?.rawValue) }

    func didFetch(_ changes: ZoneChanges, by number: Int) async {
        let texts = changes.changes.map { change in
            switch change {
            case .saved(let record): "\(record.id.recordName)@\(record.changeTag ?? "-") \(Self.text(record.fields))"
            case .deleted(let deletion): "no \(deletion.id.recordName)"
            }
        }
        note("d\(number) fetches \(texts.joined(separator: ", "))\(changes.moreComing ? " and more" : "")")
        await interrupt(number)
    }

    private static func text(_ operation: RecordOperation) -> String {
        "\(operation.kind.rawValue) \(operation.record.id.recordName)@\(operation.record.changeTag ?? "-") "
            + text(operation.record.fields) + (operation.cleared.isEmpty ? "" : " clears \(operation.cleared.sorted())")
    }

    private static func text(_ values: [String: String]) -> String {
        values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }

    private static func text(_ outcome: RecordOutcome) -> String {
        switch outcome {
        case .saved(let record): "\(record.id.recordName)@\(record.changeTag ?? "-")"
        case .deleted(let id): "no \(id.recordName)"
        case .failed(let error): error.code.rawValue
        }
    }

    private static func text(_ fields: [String: CloudValue]) -> String {
        fields.filter { $0.key != editedField }.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.text)" }.joined(
            separator: " ")
    }

    private static let editedField = "tide_edited"

    // The end

    /// Without faults, all devices go on until none has anything to do.
    private func end() async throws {
        if let interruption { throw interruption }
        isEnding = true
        for device in devices {
            device.faultRates = [:]
            device.kill.disarm()
        }
        note("the end begins")
        for _ in 0..<20 {
            var hasRested = true
            for device in devices {
                await device.engine.look()
                hasRested = try await rest(device) && hasRested
            }
            if hasRested { return }
        }
        throw Failure(reason: "the devices do not come to rest")
    }

    /// Has a device do all that it has to do; whether it had nothing to send.
    private func rest(_ device: SimulatedDevice) async throws -> Bool {
        let before = log.count
        for _ in 0..<1000 {
            if try await device.engine.step() { continue }
            guard let next = await device.engine.nextStep else {
                return !log[before...].contains { $0.hasPrefix("the cloud did") }
            }
            time.advance(by: next - device.lead - time.now)
        }
        for work in try device.work() { note("d\(device.number) is left with \(work)") }
        throw Failure(reason: "the device \(device.number) does not come to rest")
    }

    // The checks

    private func check() async throws -> [String] {
        var (records, token): ([CloudRecord], CloudToken?) = ([], nil)
        while true {
            let page = try await cloud.zoneChanges(Self.zone, since: token, limit: nil, desiredKeys: nil)
            for case .saved(let record) in page.changes { records.append(record) }
            token = page.token
            if !page.moreComing { break }
        }
        let state = FinalState(
            cloud: records.map { record in
                FinalState.Remote(
                    name: record.id.recordName, type: record.type, tag: record.changeTag ?? "",
                    edited: record.fields[Self.editedField]?.text,
                    values: record.fields.filter { $0.key != Self.editedField }.mapValues(\.text))
            }.sorted { $0.name < $1.name },
            stores: try devices.map { try $0.rows() })
        for (number, rows) in state.stores.enumerated() {
            note("d\(number) has \(rows.map { "\($0.name) \(Self.text($0.values))" })")
        }
        var failures = ConvergenceChecker().check(state)
        failures += BookkeepingChecker().check(
            state, leftovers: try devices.map { try $0.counts(of: BookkeepingChecker.emptyTables) })
        guard failures.isEmpty else { return failures }
        failures += LossChecker(plan: plan, history: history).check(state.stores[0])
        failures += LatestEditChecker(plan: plan, history: history).check(state.stores[0])
        return failures
    }
}

extension CloudValue {
    /// As a store has it, in words.
    var text: String {
        switch self {
        case .string(let text): text
        case .int64(let number): "\(number)"
        case .reference(let reference): reference.recordName
        default: "\(self)"
        }
    }
}
