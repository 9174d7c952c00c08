import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// One run: devices edit, synchronise, are killed and start again, in an order that follows from a seed, on virtual time. Then
/// all finish their work, and checkers compare the stores and the cloud.
///
/// One thing happens at a time. The simulation waits for each step, and a step calls it where something may happen in between.
actor Simulation {
    private let time = VirtualTime()
    private var random: SeededRandom
    let plan: SimulationPlan
    private let folder: URL
    private var devices: [SimulatedDevice] = []
    /// The databases of the accounts; a run without accounts has one.
    private var clouds: [any CloudDatabase] = []
    /// The accounts' names in the cloud.
    private var users: [String] = []
    private var embedded: EmbeddedCloud!
    private let places = (0..<Simulation.accountCount).map { _ in DatabasePlace() }
    /// The cloud's folder, the number of times that it was put back, and its copies.
    private var cloudFolder: URL
    private var restorations = 0
    private var cloudBackups: [URL] = []
    /// Copies of the devices' containers.
    private var deviceBackups: [Int: [DeviceBackup]] = [:]

    /// A copy of a device's container, with what the device then knew of the first account's records.
    private struct DeviceBackup {
        let url: URL
        let knowledge: [String: Set<Int>]
    }
    /// The edits of each account.
    private(set) var histories: [EditHistory]
    private let pictures = SimulatedPictures()
    /// The words for ingested assets, by their identifiers.
    private var pictureNames: [String: String] = [:]
    /// The records that were saved many at once.
    private var bulk: [String] = []
    private var bulks = 0
    private var log: [String] = []
    private var isEnding = false
    private static let zone = CloudZoneID(SyncConfiguration().zoneName)
    private static let cloudContainer = "iCloud.org.example.simulation"
    private static let deviceCount = 3
    private static let accountCount = 2

    struct Outcome: Sendable {
        var log: [String]
        /// The failures.
        var failures: [String]
        /// A digest of the log: equal for equal runs.
        var digest: UInt64 {
            log.reduce(0xcbf2_9ce4_8422_2325) { digest, line in
                line.utf8.reduce(digest) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            }
        }
    }

    /// An error of the run itself.
    struct Failure: Error { let reason: String }

    /// Makes the storage of the cloud's records; `nil` for SQLite.
    typealias Storage = @Sendable () async throws -> any CloudStorage
    private let storage: Storage?

    private init(_ seed: UInt64, _ storage: Storage?) {
        self.storage = storage
        random = SeededRandom(seed)
        plan = SimulationPlan(&random, devices: Self.deviceCount)
        folder = ContainerTemplate.scratch.appendingPathComponent("run-\(seed)-\(UUID().uuidString)", isDirectory: true)
        cloudFolder = folder.appendingPathComponent("cloud")
        histories = Array(repeating: EditHistory(devices: Self.deviceCount), count: Self.accountCount)
    }

    /// Returns the plan of a seed's run.
    static func plan(_ seed: UInt64) -> SimulationPlan {
        var random = SeededRandom(seed)
        return SimulationPlan(&random, devices: deviceCount)
    }

    /// Runs a seed.
    ///
    /// - Parameter storage: Makes the storage of the cloud's records, for a run whose cloud is not put back to an earlier state.
    static func run(_ seed: UInt64, template: ContainerTemplate, storage: Storage? = nil) async -> Outcome {
        let simulation = Simulation(seed, storage)
        let outcome = await simulation.run(template)
        try? FileManager.default.removeItem(at: simulation.folder)
        return outcome
    }

    private func run(_ template: ContainerTemplate) async -> Outcome {
        note(plan.description)
        do {
            try await open(template)
            for _ in 0..<plan.actions {
                try await act()
                try followRecord()
            }
            let failures = try await end()
            devices = []
            return Outcome(log: log, failures: failures)
        } catch {
            devices = []
            return Outcome(log: log, failures: ["the run failed: \(error)"])
        }
    }

    func note(_ line: String) { log.append(line) }

    /// The record whose rows are logged whenever they have changed.
    private static let followed = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_RECORD"]
    private var followedRows: [Int: SimulatedDevice.StoredRow?] = [:]
    private var followedWork: [Int: [String]] = [:]

    private func followRecord() throws {
        guard let name = Self.followed else { return }
        for device in devices {
            let row = try device.rows { $0 }.first { $0.name == name }
            guard followedRows[device.number] != .some(row) else { continue }
            followedRows[device.number] = .some(row)
            note("d\(device.number) now has \(row.map { "\($0)" } ?? "no \(name)")")
        }
        for device in devices {
            let work = try device.work()
            guard followedWork[device.number] != work else { continue }
            followedWork[device.number] = work
            note("d\(device.number) has to do: \(work.joined(separator: "; "))")
        }
    }

    // Setting up

    private func open(_ template: ContainerTemplate) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let time = time
        if let storage {
            let storage = try await storage()
            embedded = try EmbeddedCloud(at: cloudFolder, now: { time.now }, storage: { _, _ in storage })
        } else if plan.features.contains(.restoredCloud) {
            embedded = try EmbeddedCloud(at: cloudFolder, now: { time.now })
        } else {
            embedded = try EmbeddedCloud(inMemoryBeside: cloudFolder, now: { time.now })
        }
        try await connect()
        for database in clouds { users.append(try await database.account().userRecordName ?? "") }
        var limits = CloudLimits()
        limits.operationsPerRequest = plan.operationsPerRequest
        limits.bytesPerAssetPiece = SimulatedPictures.bytesPerPiece
        let (page, places) = (plan.changesPerPage, places)
        for number in 0..<Self.deviceCount {
            devices.append(
                try SimulatedDevice(
                    number, in: folder, template: template, time: time, lead: plan.leads[number], seed: random.next(),
                    manner: SimulatedDevice.Manner(policy: plan.policy, ahead: plan.ahead)
                ) { [unowned self] kill, faults, account in
                    let signedIn = account.number
                    let observed = ObservedDatabase(
                        base: PlacedDatabase(place: places[signedIn]), device: number, number: signedIn, kill: kill,
                        simulation: self)
                    let faulty = FaultyDatabase(
                        observed, plan: faults, sleep: { time.advance(by: Int64($0 / .microseconds(1))) })
                    let database = SimulatedDatabase(
                        base: faulty, device: number, number: signedIn, account: account, kill: kill, limits: limits, page: page,
                        simulation: self)
                    return (database, faulty)
                })
        }
        if plan.oddDevice != nil {
            for device in devices {
                let field = RecordTypeSchema.Field(name: "b", type: plan.type(of: "b", on: device.number))
                let schemas = Set(plan.records.map(plan.type)).sorted().map { RecordTypeSchema(name: $0, fields: [field]) }
                try await device.store.declare(schemas, environment: .development)
            }
        }
        if plan.faultRate > 0 { for device in devices { device.faultRates = FaultPlan.all(rate: plan.faultRate, seed: 0).rates } }
    }

    private func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    /// Connects the devices to the databases of the open cloud.
    private func connect() async throws {
        clouds = []
        for (number, place) in places.enumerated() {
            let account = try await embedded.addAccount("anna\(number)@example.org")
            let database = try embedded.database(.private, of: Self.cloudContainer, account: account.id)
            clouds.append(database)
            place.database = database
        }
    }

    private func act() async throws {
        if plan.features.contains(.restoredCloud), chance(10) { return try await actOnCloud() }
        if plan.features.contains(.restoredDevice), chance(10) {
            return try actOnContainer(of: devices[Int.random(in: 0..<devices.count, using: &random)])
        }
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
        case 97..<98: try restart(device)
        default: try await actOnFeature(device)
        }
    }

    /// Does something that only some runs have.
    private func actOnFeature(_ device: SimulatedDevice) async throws {
        let features = SimulationPlan.Feature.allCases.filter(plan.features.contains)
        switch features.randomElement(using: &random) {
        case .purges: try await purge(device)
        case .asking: try await resolve(device)
        case .accounts: try await changeAccount(device)
        case .bulk: try await editMany(device)
        case .zoneLoss: try await loseZone()
        case .restoredCloud: try await actOnCloud()
        case .restoredDevice: try actOnContainer(of: device)
        case .lookingAhead, .clashes, .pictures, nil: try restart(device)
        }
    }

    private func purge(_ device: SimulatedDevice) async throws {
        let age = [0, 1, 10, 100].randomElement(using: &random)!
        let purge = try await device.store.purgeHistory(olderThan: .seconds(age), keepingAtLeast: .zero)
        note("d\(device.number) purges \(purge.changes) changes of \(purge.transactions) transactions")
    }

    /// Resolves the conflicts that were left to a person.
    private func resolve(_ device: SimulatedDevice) async throws {
        guard !device.isBusy, !device.kill.isDead else { return }
        device.isBusy = true
        defer { device.isBusy = false }
        let resolved = try await device.engine.resolveConflicts(policy: plan.resolvingPolicy)
        note("d\(device.number) resolves \(resolved.map(\.name))")
        if device.kill.isDead {
            try device.restart()
            note("d\(device.number) has died and begins again")
        }
    }

    /// Copies the cloud, or puts it back.
    private func actOnCloud() async throws {
        if cloudBackups.isEmpty || chance(2) {
            let backup = folder.appendingPathComponent("cloud-backup-\(cloudBackups.count)")
            let problems = try CloudBackup(of: cloudFolder, to: backup).run().problems
            guard problems.isEmpty else { throw Failure(reason: "the copy of the cloud has \(problems)") }
            cloudBackups.append(backup)
            note("the cloud is backed up as \(cloudBackups.count - 1)")
            return
        }
        let number = Int.random(in: 0..<cloudBackups.count, using: &random)
        restorations += 1
        cloudFolder = folder.appendingPathComponent("cloud-\(restorations)")
        _ = try CloudRestoration(of: cloudBackups[number], to: cloudFolder).run()
        let time = time
        embedded = try EmbeddedCloud(at: cloudFolder, now: { time.now })
        try await connect()
        note("the cloud is put back to \(number)")
    }

    /// Copies a device's container, or puts it back.
    private func actOnContainer(of device: SimulatedDevice) throws {
        guard !device.isBusy, !device.kill.isDead else { return }
        try look(device)
        let backups = deviceBackups[device.number] ?? []
        if backups.isEmpty || chance(2) {
            let backup = folder.appendingPathComponent("\(device.number)-backup-\(backups.count)")
            try ContainerBackup(of: device.container, to: backup).run()
            deviceBackups[device.number, default: []].append(
                DeviceBackup(url: backup, knowledge: histories[0].knowledge(of: device.number)))
            note("d\(device.number) is backed up as \(backups.count)")
            return
        }
        let number = Int.random(in: 0..<backups.count, using: &random)
        restorations += 1
        let place = folder.appendingPathComponent("\(device.number)-restored-\(restorations)")
        try ContainerRestoration(of: ContainerDirectory(openingAt: backups[number].url), to: place).run()
        try device.restart(with: place)
        // In runs with accounts, no device is put back.
        histories[0].putBack(device.number, to: backups[number].knowledge)
        note("d\(device.number) is put back to \(number)")
    }

    private func loseZone() async throws {
        do throws(CloudError) {
            try await clouds[0].modifyZones(saving: [], deleting: [Self.zone])
        } catch {
            guard error.code == .zoneNotFound else { throw error }
            return
        }
        histories[0].loseCloud()
        note("the cloud loses the zone")
    }

    // Accounts

    private func changeAccount(_ device: SimulatedDevice) async throws {
        let account = device.account
        switch Int.random(in: 0..<8, using: &random) {
        case 0: account.status = .temporarilyUnavailable
        case 1: account.status = .noAccount
        case 2: account.switches = AccountState(isSignedIn: true, appIsOn: false)
        case 3: account.switches = AccountState(isSignedIn: false)
        case 4: signIn(device)
        default:
            guard !device.isBusy else { return }
            try look(device)
            // Records without an account would go to the first account.
            guard device.owner != nil else { return }
            signIn(device)
            if chance(2) { try await restore(device) }
            account.number = 1 - account.number
            try restart(device)
        }
        note("d\(device.number) account \(account.number) \(account.status.rawValue) \(account.switches.isAvailable)")
    }

    private func signIn(_ device: SimulatedDevice) {
        device.account.status = .available
        device.account.switches = AccountState(isSignedIn: true)
    }

    /// Restores a quarantine of the account whose records the device has.
    private func restore(_ device: SimulatedDevice) async throws {
        guard !device.isBusy, !device.kill.isDead else { return }
        try look(device)
        guard let owner = device.owner else { return }
        for quarantine in try device.container.quarantines() where quarantine.user == users[owner] {
            let before = Set(try rows(device).map(\.name))
            let policy = plan.resolvingPolicy
            _ = try await device.store.restore(quarantine, all: false, author: "test", policy: { _ in policy })
            try device.container.discard(quarantine)
            let after = try rows(device)
            let changed = after.filter(\.isPending).map(\.name) + before.subtracting(after.map(\.name))
            for name in changed { histories[owner].restore(name, by: device.number, from: quarantine.id) }
            note("d\(device.number) restores \(changed.sorted()), of \(quarantine.pending) of \(quarantine.records) records")
        }
    }

    private func rows(_ device: SimulatedDevice) throws -> [SimulatedDevice.StoredRow] {
        try device.rows { pictureNames[$0] ?? $0 }
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
        // The device has looked at its clock, and may have been killed by that.
        if device.kill.isDead { try restart(device) }
    }

    private func restart(_ device: SimulatedDevice) throws {
        guard !device.isBusy else { return }
        try look(device)
        try device.restart()
        note("d\(device.number) begins again")
    }

    /// Runs one step of an engine; `false` when there was nothing to do.
    @discardableResult
    private func step(_ device: SimulatedDevice, depth: Int = 0) async throws -> Bool {
        guard !device.isBusy else { return false }
        device.isBusy = true
        defer { device.isBusy = false }
        let engine = device.engine
        let kill = device.kill
        if chance(2) { await engine.requestSync() }
        var didWork = false
        do {
            if chance(8) {
                _ = try await engine.sync(patience: .zero)
                didWork = true
            } else {
                didWork = try await engine.step()
            }
        } catch {
            // Errors of a killed process don't matter.
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
        let count = chance(4) ? Int.random(in: 1...plan.records.count, using: &random) : 1
        var names = plan.records.shuffled(using: &random).prefix(count) + []
        if !bulk.isEmpty, chance(3) { names = [bulk.randomElement(using: &random)!] }
        try await save(names.map { draw($0, device) }, device)
    }

    /// Saves so many records at once that they are sent after persons' edits.
    private func editMany(_ device: SimulatedDevice) async throws {
        guard bulks < 2 else { return }
        bulks += 1
        // Sometimes another device saves the same records.
        let names = (0..<Int.random(in: 100...130, using: &random)).map { "x\(chance(2) ? 0 : bulks)-\($0)" }
        bulk += names
        try await save(Set(names).sorted().map { draw($0, device, isBulk: true) }, device)
    }

    private typealias Drawn = (id: Int, edit: RecordEdit, schema: RecordTypeSchema?, picture: Int?)

    private func save(_ edits: [Drawn], _ device: SimulatedDevice) async throws {
        try look(device)
        let owner = device.owner ?? 0
        func values(_ rows: [SimulatedDevice.StoredRow]) -> [String: [String: String]] {
            rows.reduce(into: [:]) { $0[$1.name] = $1.values }
        }
        let before = values(try rows(device))
        var (blobs, stores): ([BlobStore.Blob], [BlobStore]) = ([], [])
        var all = edits.map(\.edit)
        for (index, edit) in edits.enumerated() {
            guard let picture = edit.picture else { continue }
            let (store, blob) = try pictures.ingest(picture, into: device.container)
            stores.append(store)
            blobs.append(blob)
            pictureNames[blob.id] = "picture \(picture)"
            let old = all[index]
            all[index] = RecordEdit(
                record: old.record, base: .any, values: (old.values ?? [:]).merging(["image": .asset(blob.id)]) { $1 },
                fields: old.fields.union(["image"]))
        }
        let outcome: SaveOutcome
        do {
            outcome = try await device.store.save(
                all, schemas: edits.compactMap(\.schema), blobs: blobs, author: TransactionAuthor("test", origin: .save),
                policy: { _ in .mergeByPropertyObjectTrump }, check: { _ in })
        } catch {
            // Records of another device have brought the field with the other type.
            guard plan.oddDevice != nil, let error = error as? StoreError, error.code == .schema else { throw error }
            note("d\(device.number) can't save: \(error.message)")
            return
        }
        for store in stores { store.close() }
        guard let transaction = outcome.transaction else { return }
        let time = try device.transactionTime(transaction)
        let after = values(try rows(device))
        for ((id, _, _, _), edit) in zip(edits, all) {
            let name = edit.record.name
            let (old, new) = (before[name], after[name])
            guard edit.values != nil else {
                guard new == nil else { throw Failure(reason: "the record \(name) is there after it was deleted") }
                guard old != nil else { continue }
                histories[owner].edit(id, name, by: device.number, fields: nil, state: [:], time: time)
                note("d\(device.number) e\(id) deletes \(name)")
                continue
            }
            guard let new else { throw Failure(reason: "the record \(name) is not there after it was saved") }
            guard old != new else { continue }
            // A field that had no value and still has none was not edited.
            let changed = edit.fields.filter { old?[$0] != new[$0] }
            histories[owner].edit(
                id, name, by: device.number, fields: changed.reduce(into: [:]) { $0[$1] = .some(new[$1]) }, state: new, time: time
            )
            note("d\(device.number) e\(id) saves \(name) \(changed.sorted()) -> \(Self.text(new))")
        }
    }

    /// Draws a random edit of a record.
    private func draw(_ name: String, _ device: SimulatedDevice, isBulk: Bool = false) -> Drawn {
        let record = RecordName(type: plan.type(of: name), name: name)
        nextID += 1
        if !isBulk, plan.deletions > 0, chance(plan.deletions) {
            return (nextID, RecordEdit(record: record, base: .any, values: nil, fields: []), nil, nil)
        }
        var values: [String: FieldValue?] = [:]
        for field in ["a", "b", "c"] where chance(2) {
            // Sometimes the field is cleared.
            let isNumber = plan.type(of: field, on: device.number) == .int64
            let value: FieldValue = isNumber ? .int64(Int64(nextID)) : .string("e\(nextID)")
            values[field] = .some(chance(5) ? nil : value)
        }
        if plan.hasReferences, chance(3) {
            let target = plan.records.randomElement(using: &random)!
            values["parent"] = .some(chance(4) || target == name ? nil : .reference(target))
        }
        if plan.isStamped { values["s"] = .some(.string("e\(nextID)")) }
        var picture: Int?
        if !isBulk, plan.features.contains(.pictures), chance(2) {
            picture = chance(5) ? nil : Int.random(in: 0..<SimulatedPictures.count, using: &random)
            if picture == nil { values["image"] = .some(nil) }
        }
        if values.isEmpty || isBulk { values["a"] = .some(.string("e\(nextID)")) }
        let fields = Set(values.keys).union(picture == nil ? [] : ["image"])
        let schema = RecordTypeSchema(
            name: record.type, fields: fields.sorted().map { .init(name: $0, type: plan.type(of: $0, on: device.number)) })
        let edit = RecordEdit(record: record, base: .any, values: values.compactMapValues { $0 }, fields: Set(values.keys))
        return (nextID, edit, schema, picture)
    }

    /// Records what a device knows now.
    private func look(_ device: SimulatedDevice) throws {
        let user = try device.user()
        let owner = user.flatMap { users.firstIndex(of: $0) }
        if owner != device.owner {
            if let last = device.owner {
                // The records were set aside as the newest quarantine.
                let all = try device.container.quarantines().filter { $0.user == users[last] }
                histories[last].setAside(device.number, as: all.last { !seenQuarantines.contains($0.id) }?.id)
                seenQuarantines.formUnion(all.map(\.id))
                note("d\(device.number) is account \(owner ?? -1)'s, and has set \(all.count) aside")
            }
            device.owner = owner
        }
        let tags = try rows(device).reduce(into: [:]) { $0[$1.name] = $1.tag }
        histories[owner ?? 0].look(
            device.number, token: try device.token(), tags: tags, deferUntilReply: try device.deferUntilReply())
    }

    private var seenQuarantines: Set<UUID> = []

    // Events in the middle of a step

    func interrupt(_ number: Int) async {
        guard !isEnding, chance(4) else { return }
        do {
            let device = devices[number]
            // An edit in the container of a killed process would never be read.
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

    /// The tokens of requests that the cloud has carried out.
    private var committed: Set<String> = []

    /// Returns the error of a request that the cloud sometimes does not carry out.
    func refusal(of request: ModifyRecordsRequest) -> CloudError? {
        guard !isEnding, plan.faultRate > 0, chance(12) else { return nil }
        // A request that was carried out gets the same answer as before.
        if let token = request.clientToken, committed.contains(token) {
            return CloudError(.internalError, "simulated: a fault of the cloud's")
        }
        switch Int.random(in: 0..<3, using: &random) {
        case 0 where request.operations.count > 1: return CloudError(.limitExceeded, "simulated: too much at once")
        case 1: return CloudError(.quotaExceeded, "simulated: no room")
        default: return CloudError(.internalError, "simulated: a fault of the cloud's")
        }
    }

    func willModify(_ request: ModifyRecordsRequest, by number: Int, for account: Int) async {
        do {
            try look(devices[number])
            histories[account].send(request, by: number)
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

    func didCommit(_ request: ModifyRecordsRequest, _ outcomes: [RecordOutcome], by number: Int, for account: Int) {
        if let token = request.clientToken { committed.insert(token) }
        histories[account].commit(request, outcomes)
        note("the cloud did for d\(number) \(outcomes.map(Self.text).joined(separator: ", "))")
    }

    func willAnswer(_ changes: ZoneChanges, since token: CloudToken?, to number: Int, for account: Int) {
        histories[account].answer(changes, since: token?.rawValue, to: number)
    }

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

    /// Runs all devices without faults until none has anything to do, in one account after the other.
    ///
    /// - Returns: The failures.
    private func end() async throws -> [String] {
        if let interruption { throw interruption }
        isEnding = true
        for device in devices {
            device.faultRates = [:]
            device.kill.disarm()
            signIn(device)
        }
        note("the end begins")
        guard plan.features.contains(.accounts) else {
            // After a restart, devices try again what waited for an account or a picture.
            if plan.features.contains(.pictures) { for device in devices { try restart(device) } }
            try await restAll()
            return try await check(0)
        }
        for device in devices { try restart(device) }
        try await restAll()
        for number in [1, 0] {
            for device in devices {
                try look(device)
                guard device.account.number != number else { continue }
                device.account.number = number
                time.advance(by: 1000)
                try restart(device)
            }
            try await restAll()
            for device in devices { try await restore(device) }
            try await restAll()
            let failures = try await check(number)
            guard failures.isEmpty else { return failures.map { "account \(number): \($0)" } }
        }
        return []
    }

    private func restAll() async throws {
        for _ in 0..<20 {
            var hasRested = true
            for device in devices {
                await device.engine.requestSync()
                hasRested = try await rest(device) && hasRested
                guard plan.features.contains(.asking) else { continue }
                let resolved = try await device.engine.resolveConflicts(policy: plan.resolvingPolicy)
                if !resolved.isEmpty {
                    note("d\(device.number) resolves \(resolved.map(\.name))")
                    hasRested = false
                }
            }
            if hasRested { return }
        }
        throw Failure(reason: "the devices do not come to rest")
    }

    /// Runs a device until it has nothing to do. Returns whether it had nothing to send.
    private func rest(_ device: SimulatedDevice) async throws -> Bool {
        let before = log.count
        for _ in 0..<1000 {
            try followRecord()
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

    private func check(_ account: Int) async throws -> [String] {
        for device in devices { try look(device) }
        var (records, token): ([CloudRecord], CloudToken?) = ([], nil)
        while true {
            let page = try await clouds[account].zoneChanges(Self.zone, since: token, limit: nil, desiredKeys: nil)
            for case .saved(let record) in page.changes { records.append(record) }
            token = page.token
            if !page.moreComing { break }
        }
        let schema = try await embedded.schema(of: Self.cloudContainer)
        let clash = plan.oddDevice == nil ? nil : ClashChecker(plan: plan, schema: schema)
        let state = FinalState(
            cloud: records.map { record in
                FinalState.Remote(
                    name: record.id.recordName, type: record.type, tag: record.changeTag ?? "",
                    edited: record.fields[Self.editedField]?.text,
                    values: record.fields.filter { $0.key != Self.editedField }.mapValues { text($0) })
            }.sorted { $0.name < $1.name },
            stores: try devices.map { device in try device.rows { pictures.name(of: $0, in: device.store) } },
            excused: try devices.map { try clash?.excused(by: $0) ?? [] }, unequalField: clash == nil ? nil : "b")
        for (number, rows) in state.stores.enumerated() {
            note("d\(number) has \(rows.map { "\($0.name) \(Self.text($0.values))" })")
        }
        var failures = ConvergenceChecker().check(state)
        failures += BookkeepingChecker().check(
            state,
            leftovers: try devices.map { device in
                let isOdd = try clash?.isOdd(device.number) ?? false
                return try device.counts(of: isOdd ? BookkeepingChecker.oddTables : BookkeepingChecker.emptyTables)
            })
        if let clash { for device in devices { failures += try clash.check(device, state) } }
        guard failures.isEmpty else { return failures }
        let history = histories[account]
        let names = history.records.filter { !state.allExcused.contains($0) }
        failures += AbsenceChecker(plan: plan, history: history, records: names).check(state.stores[0])
        failures += LossChecker(plan: plan, history: history, records: names).check(state.stores[0])
        failures += LatestEditChecker(plan: plan, history: history, records: names).check(state.stores[0])
        return failures
    }

    private func text(_ value: CloudValue) -> String {
        if case .asset(let asset) = value { return pictures.name(ofDigest: asset.digest) }
        return value.text
    }
}

extension CloudValue {
    /// A value of a store in words.
    var text: String {
        switch self {
        case .string(let text): text
        case .int64(let number): "\(number)"
        case .reference(let reference): reference.recordName
        default: "\(self)"
        }
    }
}
