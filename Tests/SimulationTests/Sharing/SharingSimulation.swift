import Foundation
import TestSupport
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// One run with several people: an owner with two devices, who shares zones with guests. Devices make, edit, delete and move
/// records. Meanwhile devices are killed, servers fail, shares begin and end, permissions change, and apps are updated. At the
/// end all devices finish their work, and each one's content is compared with what the cloud shows to its account.
///
/// One thing happens at a time, in an order that follows from the seed.
actor SharingSimulation {
    let plan: SharingPlan
    private let time = VirtualTime()
    private var random: SeededRandom
    private let folder: URL
    private let storage: Simulation.Storage?
    private var servers: [EmbeddedCloud] = []
    /// The databases by server and person: the owner's own database, and each guest's view of it.
    var databases: [[EmbeddedDatabase]] = []
    private var devices: [SimulatedDevice] = []
    private let places: [DatabasePlace]
    private var versions: [SharingPlan.Version]
    private var edits = FieldEdits()
    private var log: [String] = []
    private var made = 0
    private var value = 0
    /// The number of records that the cloud has saved or deleted.
    private var changes = 0
    private var isEnding = false
    private var interruption: (any Error)?

    private static let cloudContainer = "iCloud.org.example.simulation"
    static let people = ["anna", "ben", "cleo"]
    private static let recordCount = 8

    private init(_ seed: UInt64, _ storage: Simulation.Storage?) {
        random = SeededRandom(seed)
        plan = SharingPlan(&random)
        self.storage = storage
        folder = ContainerTemplate.scratch.appendingPathComponent("sharing-\(seed)-\(UUID().uuidString)", isDirectory: true)
        places = (0..<plan.devices).map { _ in DatabasePlace() }
        versions = plan.versions
    }

    /// Returns the plan of a seed's run.
    static func plan(_ seed: UInt64) -> SharingPlan {
        var random = SeededRandom(seed)
        return SharingPlan(&random)
    }

    /// Makes empty containers for all devices that a run may have.
    static func template() throws -> ContainerTemplate {
        try ContainerTemplate(devices: SharingPlan.owners + people.count - 1, scopes: [.private, .shared])
    }

    /// Runs a seed.
    ///
    /// - Parameter storage: Makes the storage of the cloud's records, for each server; `nil` for SQLite.
    static func run(_ seed: UInt64, template: ContainerTemplate, storage: Simulation.Storage? = nil) async -> Simulation.Outcome {
        let simulation = SharingSimulation(seed, storage)
        let outcome = await simulation.run(template)
        try? FileManager.default.removeItem(at: simulation.folder)
        return outcome
    }

    private func run(_ template: ContainerTemplate) async -> Simulation.Outcome {
        note(plan.description)
        do {
            try await open(template)
            for _ in 0..<plan.actions {
                try await act()
                if let interruption { throw interruption }
            }
            let failures = try await end()
            devices = []
            return Simulation.Outcome(log: log, failures: failures)
        } catch {
            devices = []
            return Simulation.Outcome(log: log, failures: ["the run failed: \(error)"])
        }
    }

    private func note(_ line: String) { log.append(line) }
    private func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    // Setting up

    /// Returns the person of a device: 0 for the owner, or the number of a guest.
    func person(of device: Int) -> Int { plan.isOwners(device) ? 0 : device - SharingPlan.owners + 1 }
    private static func address(of person: Int) -> UserLookUp { .emailAddress("\(people[person])@example.org") }
    private var guests: ClosedRange<Int> { 1...plan.guests }
    private var sharedZones: [CloudZoneID] { (0..<plan.sharedZones).map { ZoneName.ofShare(root: "s\($0)").cloudZone } }
    private var anyServer: [EmbeddedDatabase] { databases[Int.random(in: 0..<databases.count, using: &random)] }

    private func open(_ template: ContainerTemplate) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for _ in 0..<plan.servers { servers.append(try await openServer()) }
        for server in servers { databases.append(try await databases(of: server)) }
        for zone in sharedZones { try await share(zone) }
        var limits = CloudLimits()
        limits.operationsPerRequest = plan.operationsPerRequest
        let (page, time) = (plan.changesPerPage, time)
        for number in 0..<plan.devices {
            useServer(0, number)
            let place = places[number]
            let manner = SimulatedDevice.Manner(
                policy: plan.policy, ahead: plan.ahead, scope: plan.isOwners(number) ? .private : .shared)
            devices.append(
                try SimulatedDevice(
                    number, in: folder, template: template, time: time, lead: plan.leads[number], seed: random.next(),
                    manner: manner
                ) { [unowned self] kill, faults, _ in
                    let counted = CountedDatabase(place: place) { [unowned self] in await count($0, number) }
                    let faulty = FaultyDatabase(
                        counted, plan: faults, sleep: { time.advance(by: Int64($0 / .microseconds(1))) })
                    let database = InterruptedDatabase(
                        base: faulty, kill: kill, limits: limits, page: page,
                        interrupt: { [unowned self] in await interrupt(number) })
                    return (database, faulty)
                })
        }
        if plan.faultRate > 0 { for device in devices { device.faultRates = FaultPlan.all(rate: plan.faultRate, seed: 0).rates } }
    }

    private func openServer() async throws -> EmbeddedCloud {
        let (time, url) = (time, folder.appendingPathComponent("cloud"))
        if let storage {
            let storage = try await storage()
            return try EmbeddedCloud(at: url, now: { time.now }, storage: { _, _ in storage })
        }
        guard plan.servers == 1 else { return try EmbeddedCloud(at: url, now: { time.now }) }
        return try EmbeddedCloud(inMemoryBeside: url, now: { time.now })
    }

    private func databases(of server: EmbeddedCloud) async throws -> [EmbeddedDatabase] {
        var all: [EmbeddedDatabase] = []
        for (person, name) in Self.people.prefix(1 + plan.guests).enumerated() {
            let email = "\(name)@example.org"
            let known = try await server.account(email)
            let account = if let known { known } else { try await server.addAccount(email) }
            all.append(try server.database(person == 0 ? .private : .shared, of: Self.cloudContainer, account: account.id))
        }
        return all
    }

    private func useServer(_ server: Int, _ device: Int) { places[device].database = databases[server][person(of: device)] }

    // Actions

    private func act() async throws {
        let device = devices[Int.random(in: 0..<devices.count, using: &random)]
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<28: try await edit(device)
        case 28..<65: try await step(device)
        case 65..<75: try await pass(device)
        case 75..<78:
            let rate = chance(2) ? 0 : plan.faultRate
            device.faultRates = FaultPlan.all(rate: rate, seed: 0).rates
            note("d\(device.number) faults \(rate)")
        case 78..<83:
            let moments = Int.random(in: 1...25, using: &random)
            device.kill.arm(moments)
            note("d\(device.number) dies after \(moments)")
        case 83..<85: try restart(device)
        case 85..<88:
            versions[device.number] = .second
            note("d\(device.number) has the second version")
        case 88..<91:
            let server = Int.random(in: 0..<servers.count, using: &random)
            useServer(server, device.number)
            note("d\(device.number) uses server \(server)")
        default: try await change()
        }
    }

    /// Acts between a device's request and its answer.
    private func interrupt(_ number: Int) async {
        guard !isEnding, chance(4) else { return }
        do {
            let device = devices[number]
            switch Int.random(in: 0..<5, using: &random) {
            // An edit in the container of a killed process would never be read.
            case 0..<2 where !device.kill.isDead: try await edit(device)
            case 4: try await change()
            default: try await step(devices[Int.random(in: 0..<devices.count, using: &random)])
            }
        } catch {
            interruption = error
        }
    }

    private func count(_ outcomes: [RecordOutcome], _ number: Int) {
        for outcome in outcomes {
            switch outcome {
            case .saved(let record):
                changes += 1
                note("the cloud saved \(record.id.zone.zoneName)/\(record.id.recordName) of d\(number)")
            case .deleted(let id):
                changes += 1
                note("the cloud deleted \(id.zone.zoneName)/\(id.recordName) for d\(number)")
            case .failed(let error): note("the cloud refused d\(number): \(error.code.rawValue)")
            }
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
        // The device has looked at its clock, and may have been killed by that.
        if device.kill.isDead { try restart(device) }
    }

    private func restart(_ device: SimulatedDevice) throws {
        guard !device.isBusy else { return }
        try device.restart()
        note("d\(device.number) begins again")
    }

    /// Runs one step of an engine.
    private func step(_ device: SimulatedDevice) async throws {
        guard !device.isBusy else { return }
        device.isBusy = true
        defer { device.isBusy = false }
        let (engine, kill) = (device.engine, device.kill)
        if chance(2) { await engine.requestSync() }
        do {
            if chance(8) { _ = try await engine.sync(patience: .zero) } else { _ = try await engine.step() }
        } catch {
            // Errors of a killed process don't matter.
            guard kill.isDead else { throw error }
        }
        note("d\(device.number) step")
        guard kill.isDead else { return }
        try device.restart()
        note("d\(device.number) has died and begins again")
    }

    // Editing

    private func edit(_ device: SimulatedDevice) async throws {
        let all = try device.rows { $0 }
        // An older version of the app does not know this type.
        let rows = all.filter { $0.type == "Trip" || versions[device.number] == .second }
        let zones = try await device.store.zones().filter { plan.isOwners(device.number) || $0.name.owner != nil }
        guard let row = rows.randomElement(using: &random), made >= Self.recordCount || !chance(3) else {
            guard let zone = zones.randomElement(using: &random), made < Self.recordCount else { return }
            made += 1
            let isNote = versions[device.number] == .second && chance(3)
            let record = RecordName(type: isNote ? "Note" : "Trip", name: "r\(made)")
            return try await save(record, in: zone, device)
        }
        let zone = zones.first { $0.id == row.zone }
        let record = RecordName(type: row.type, name: row.name)
        if plan.isOwners(device.number), plan.movesRecords, chance(4), let target = zones.randomElement(using: &random) {
            return try await move(record, to: target, device)
        }
        if plan.deletions > 0, chance(plan.deletions) { return try await delete(record, in: zone, device) }
        try await save(record, in: zone, device)
    }

    private func save(_ record: RecordName, in zone: StoreZone?, _ device: SimulatedDevice) async throws {
        let fields = versions[device.number] == .second ? ["f\(device.number)", "g\(device.number)"] : ["f\(device.number)"]
        var values: [String: String] = [:]
        for field in fields where fields.count == 1 || values.isEmpty || chance(2) {
            value += 1
            values[field] = "v\(value)"
        }
        let schema = RecordTypeSchema(name: record.type, fields: fields.map { .init(name: $0, type: .string) })
        let edit = RecordEdit(
            record: record, base: .any, values: values.mapValues { .string($0) }, fields: Set(values.keys),
            zone: plan.isOwners(device.number) ? nil : zone?.id)
        let isNew = try !device.rows { $0 }.contains { $0.name == record.name }
        guard try await apply(isNew ? with(edit, zone) : edit, [schema], device) else { return }
        edits.save(record.name, values, by: device.number)
        note("d\(device.number) saves \(zone?.name.name ?? "-")/\(record.name) \(values.sorted { $0.key < $1.key })")
    }

    private func with(_ edit: RecordEdit, _ zone: StoreZone?) -> RecordEdit {
        var edit = edit
        edit.zone = zone?.id
        return edit
    }

    private func delete(_ record: RecordName, in zone: StoreZone?, _ device: SimulatedDevice) async throws {
        let edit = RecordEdit(
            record: record, base: .any, values: nil, fields: [], zone: plan.isOwners(device.number) ? nil : zone?.id)
        guard try await apply(edit, [], device) else { return }
        edits.delete(record.name)
        note("d\(device.number) deletes \(record.name)")
    }

    /// Saves an edit. Returns whether the device may make it, by what it knows.
    private func apply(_ edit: RecordEdit, _ schemas: [RecordTypeSchema], _ device: SimulatedDevice) async throws -> Bool {
        do {
            _ = try await device.store.save(
                [edit], schemas: schemas, blobs: [], author: TransactionAuthor("test", origin: .save),
                policy: { _ in .mergeByPropertyObjectTrump }, check: { _ in })
            return true
        } catch let error as PermissionDenied where !plan.isOwners(device.number) {
            note("d\(device.number) may not change \(edit.record.name): \(error)")
            return false
        }
    }

    private func move(_ record: RecordName, to zone: StoreZone, _ device: SimulatedDevice) async throws {
        switch try await device.store.moveGraph(of: [record], to: zone.id, author: "test") {
        case .moved(let records): note("d\(device.number) moves \(records.map(\.name)) to \(zone.name.name)")
        case .taken(let other): note("d\(device.number) leaves \(record.name) in \(other.zone.name), which is shared")
        }
    }

    // Changes of shares that people make elsewhere, for example in a browser

    /// Shares a zone with all guests.
    private func share(_ zone: CloudZoneID) async throws {
        let owner = anyServer[0]
        try await owner.modifyZones(saving: [zone], deleting: [])
        let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
        for guest in guests { try await invite(guest, to: share, .readWrite) }
    }

    private func invite(_ guest: Int, to share: CloudShare, _ permission: ShareParticipant.Permission) async throws {
        let server = anyServer
        let changed = try await server[0].changeShare(
            share.id, [.invite(Self.address(of: guest), role: .privateUser, permission: permission)])
        guard let participant = participant(guest, of: changed) else {
            throw Simulation.Failure(reason: "a share does not have \(Self.people[guest]), who was invited")
        }
        let link = try await server[0].makeLink(to: share.id, for: participant.id)
        _ = try await anyServer[guest].acceptLink(link.token)
    }

    private func participant(_ guest: Int, of share: CloudShare) -> ShareParticipant? {
        share.participants.first { $0.identity.lookUp == Self.address(of: guest) }
    }

    private func change() async throws {
        guard let zone = sharedZones.randomElement(using: &random) else { return }
        let share = try await anyServer[0].shares(in: zone).first
        guard let share else {
            if plan.stopsSharing {
                try await self.share(zone)
                note("\(zone.zoneName) is shared again")
            }
            return
        }
        if plan.stopsSharing, chance(3) {
            try await anyServer[0].deleteShare(share.id)
            return note("\(zone.zoneName) is shared no more")
        }
        guard plan.changesPermissions else { return }
        let guest = Int.random(in: guests, using: &random)
        let takesPart = participant(guest, of: share)?.acceptanceStatus == .accepted
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where takesPart:
            let mine = try await anyServer[guest].zones().first { $0.zoneName == zone.zoneName }
            guard let mine else { return }
            try await anyServer[guest].deleteShare(CloudRecordID(share.id.recordName, in: mine))
            note("\(Self.people[guest]) leaves \(zone.zoneName)")
        case 1 where takesPart:
            guard let id = participant(guest, of: share)?.id else { return }
            _ = try await anyServer[0].changeShare(share.id, [.remove(participant: id)])
            note("\(Self.people[guest]) is removed from \(zone.zoneName)")
        default:
            let permission: ShareParticipant.Permission = chance(2) ? .readOnly : .readWrite
            try await invite(guest, to: share, permission)
            note("\(Self.people[guest]) has \(permission) of \(zone.zoneName)")
        }
    }

    // The end

    /// Runs all devices without faults until none has anything to do.
    ///
    /// - Returns: The failures.
    private func end() async throws -> [String] {
        isEnding = true
        for device in devices {
            device.faultRates = [:]
            device.kill.disarm()
            if device.kill.isDead { try device.restart() }
        }
        note("the end begins")
        try await restAll()
        var failures: [String] = []
        for device in devices { failures += try await check(device) }
        guard failures.isEmpty else { return failures }
        let rows = try devices[0].rows { $0 }
        let records = Dictionary(rows.map { ($0.name, $0.values) }) { first, _ in first }
        var refused: [Set<String>] = []
        for device in devices { refused.append(Set(try await device.store.refused().map(\.record.name))) }
        return edits.losses(in: records, refused: refused)
    }

    private func restAll() async throws {
        for _ in 0..<30 {
            let before = changes
            for device in devices {
                await device.engine.requestSync()
                try await rest(device)
            }
            if changes == before { return }
        }
        throw Simulation.Failure(reason: "the devices do not come to rest")
    }

    /// Runs a device until it has nothing to do.
    private func rest(_ device: SimulatedDevice) async throws {
        for _ in 0..<1000 {
            if try await device.engine.step() { continue }
            guard let next = await device.engine.nextStep else { return }
            time.advance(by: next - device.lead - time.now)
        }
        for work in try device.work() { note("d\(device.number) is left with \(work)") }
        throw Simulation.Failure(reason: "the device \(device.number) does not come to rest")
    }
}
