import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore

/// Goal: after any operations in any order, devices end with the same records, and no owner and no reference is missing.
///
/// Method: random histories of two devices of one account and one of a participant: cascades, denials, shares with and without permission to
/// write, unique keys, and a program of an older version that knows fewer fields. The seed of each history is printed when it fails;
/// `TIDEMARK_RELATIONSHIP_RUNS` is the number of histories, `TIDEMARK_SEED` the seed of the first.
@Suite(.timeLimit(.minutes(180))) struct RelationshipHistoryTests {
    typealias Trip = Travel.Trip
    typealias Stop = Travel.Stop
    typealias Photo = Travel.Photo
    typealias Tag = Travel.Tag
    typealias Booking = Travel.Booking

    /// A stop in an older version of the program.
    private struct OldStop: Tidemark.Record {
        static let recordType = "Stop"
        var id: String
        var trip: Reference<Trip>
        var title = ""
        var recordName: String { id }

        static var relationships: [Relationship<OldStop>] { [.owned(by: \.trip)] }
    }

    @Test func `devices end with the same records, with all owners and references`() async throws {
        let runs = ProcessInfo.processInfo.environment["TIDEMARK_RELATIONSHIP_RUNS"].flatMap { UInt64($0) } ?? 25
        let seed = Randomness("relationship histories").seed
        let workers = UInt64(ProcessInfo.processInfo.activeProcessorCount)
        let progress = Progress()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<workers {
                group.addTask {
                    for run in stride(from: worker, to: runs, by: UInt64.Stride(workers)) {
                        let problems = try await History(seed: seed &+ run).run()
                        #expect(problems == [], "TIDEMARK_SEED=\(seed &+ run) TIDEMARK_RELATIONSHIP_RUNS=1")
                        progress.note(of: runs)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Prints to standard error how many histories have ended.
    private final class Progress: Sendable {
        private let count = LockedValue(0)

        func note(of runs: UInt64) {
            let count = count.withLock {
                $0 += 1
                return $0
            }
            guard count % 1000 == 0 else { return }
            FileHandle.standardError.write(Data("relationship histories: \(count) of \(runs)\n".utf8))
        }
    }

    private final class History {
        private var random: Randomness
        private let scratch: Scratch
        private let seed: UInt64
        private var devices: [Person] = []
        private var counter = 0
        private var steps: [String] = []
        /// The participant's tags. The owner's devices never see the tags in the participant's own store.
        private var participantTags: Set<String> = ["g2"]
        private let isTraced = ProcessInfo.processInfo.environment["TIDEMARK_RELATIONSHIP_TRACE"] != nil

        init(seed: UInt64) throws {
            self.seed = seed
            random = Randomness(seed: seed)
            scratch = try Scratch()
        }

        /// Returns the violations at the end.
        func run() async throws -> [String] {
            let place = try TwoUserFixture(scratch)
            devices = [
                try await place.person("anna", device: "1"), try await place.person("anna", device: "2"),
                try await place.person("ben"),
            ]
            // Every device knows the rules of every type.
            for (index, device) in devices.enumerated() {
                try await device.container.save([
                    Trip(id: "t\(index)"), Stop(id: "s\(index)", trip: Reference("t\(index)")),
                    Photo(id: "p\(index)", stop: Reference("s\(index)")), Tag(id: "g\(index)", name: "first\(index)"),
                    Booking(id: "b\(index)", trip: Reference("t\(index)")),
                ])
            }
            for _ in 0..<Int.random(in: 10...40, using: &random) { try await step() }
            return try await settle()
        }

        private func note(_ step: String) {
            steps.append(step)
            if isTraced { print("\(seed): \(step)") }
        }

        private func step() async throws {
            let number = Int.random(in: 0..<3, using: &random)
            let device = devices[number]
            do {
                try await step(of: device, number)
            } catch is DeletionDenied {
                note("  denied")
            } catch is PermissionDenied {
                note("  not permitted")
            } catch let error as CloudError {
                note("  \(error)")
            } catch let error as StoreError where [.invalid, .notFound].contains(error.code) {
                note("  \(error)")
            }
        }

        private func pick<R: Tidemark.Record>(_ type: R.Type, _ device: Person) async throws -> R? {
            try await device.container.fetchAll(type).sorted { $0.recordName < $1.recordName }.randomElement(using: &random)
        }

        private func name(_ letter: String) -> String {
            counter += 1
            return "\(letter)\(counter + 10)"
        }

        private func step(of device: Person, _ number: Int) async throws {
            let container = device.container
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                let trip = Trip(id: name("t"))
                note("\(number) makes \(trip.id)")
                try await container.save(trip)
            case 1, 2, 3:
                guard let trip = try await pick(Trip.self, device) else { return }
                var stop = Stop(id: name("s"), trip: Reference(trip))
                if let tag = try await pick(Tag.self, device) { stop.tags = [Reference(tag)] }
                note("\(number) makes \(stop.id) of \(trip.id) with \(stop.tags.map(\.recordName))")
                try await container.save(stop)
            case 4:
                guard let stop = try await pick(Stop.self, device) else { return }
                let photo = Photo(id: name("p"), stop: Reference(stop))
                note("\(number) makes \(photo.id) of \(stop.id)")
                let context = container.newContext()
                await context.insert(photo)
                try await context.save()
            case 5:
                let tag = Tag(id: name("g"), name: "tag\(Int.random(in: 0..<3, using: &random))")
                note("\(number) makes \(tag.id) named \(tag.name)")
                if number == 2 { participantTags.insert(tag.id) }
                try await container.save(tag)
            case 6:
                guard let trip = try await pick(Trip.self, device) else { return }
                let booking = Booking(id: name("b"), trip: Reference(trip))
                // A booking of another user's trip would be in another store than the trip.
                guard try await container.fetchShares(matching: [RecordName(type: "Trip", name: trip.id)]).isEmpty else { return }
                note("\(number) makes \(booking.id) of \(trip.id)")
                try await container.save(booking)
            case 7, 8:
                guard var stop = try await pick(Stop.self, device), let tag = try await pick(Tag.self, device) else { return }
                guard !stop.tags.contains(Reference(tag)) else { return }
                stop.tags.append(Reference(tag))
                note("\(number) gives \(stop.id) the tags \(stop.tags.map(\.recordName))")
                try await container.save(stop)
            case 9:
                guard var stop = try await pick(Stop.self, device), let trip = try await pick(Trip.self, device) else { return }
                stop.trip = Reference(trip)
                note("\(number) gives \(stop.id) to \(trip.id)")
                try await container.save(stop)
            case 10:
                guard let stop = try await pick(Stop.self, device) else { return }
                note("\(number) edits \(stop.id) by the old version")
                try await container.save(OldStop(id: stop.id, trip: stop.trip, title: name("x")))
            case 11:
                guard let trip = try await pick(Trip.self, device) else { return }
                note("\(number) deletes \(trip.id)")
                try await container.delete(trip)
            case 12:
                guard let stop = try await pick(Stop.self, device) else { return }
                note("\(number) deletes \(stop.id)")
                try await container.delete(stop)
            case 13:
                guard let tag = try await pick(Tag.self, device) else { return }
                note("\(number) deletes \(tag.id)")
                try await container.delete(tag)
            case 14:
                guard let booking = try await pick(Booking.self, device) else { return }
                note("\(number) deletes \(booking.id)")
                try await container.delete(booking)
            case 15:
                guard number < 2, let trip = try await pick(Trip.self, device) else { return }
                let permission: ShareParticipant.Permission = Bool.random(using: &random) ? .readWrite : .readOnly
                note("\(number) shares \(trip.id), \(permission)")
                let link = try await device.share(trip, with: devices[2], permission).link
                try await devices[2].container.acceptInvitation(link, in: devices[2].databases)
            default:
                note("\(number) synchronises")
                try await device.sync()
            }
        }

        // The end

        private func state(_ device: Person, _ scope: StoreScope) async throws -> [String: String] {
            var state: [String: String] = [:]
            func add<R: Tidemark.Record>(_ type: R.Type, _ text: (R) -> String) async throws {
                for record in try await device.container.fetchAll(type) {
                    let name = RecordName(record)
                    let share = try await device.container.fetchShares(matching: [name])[name]
                    guard share?.scope ?? .private == scope else { continue }
                    state["\(R.recordType) \(record.recordName)"] = text(record)
                }
            }
            try await add(Trip.self) { $0.title }
            try await add(Stop.self) { "\($0.trip.recordName) \($0.title) \($0.tags.map(\.recordName))" }
            try await add(Photo.self) { $0.stop?.recordName ?? "" }
            try await add(Tag.self) { $0.name }
            try await add(Booking.self) { $0.trip.recordName }
            return state
        }

        private func settle() async throws -> [String] {
            var problems: [String] = []
            var isQuiet = false
            for _ in 0..<12 where !isQuiet {
                isQuiet = true
                for device in devices {
                    let report = try await device.sync()
                    if report.imported + report.exported > 0 || !report.isComplete { isQuiet = false }
                }
            }
            if !isQuiet { problems.append("the devices don't come to rest") }
            let (one, two) = (try await state(devices[0], .private), try await state(devices[1], .private))
            for name in Set(one.keys).union(two.keys).sorted() where one[name] != two[name] {
                problems.append("\(name): \(one[name] ?? "gone") here, \(two[name] ?? "gone") there")
            }
            for (name, value) in try await state(devices[2], .shared) where one[name] != value {
                problems.append("\(name): \(value) in the share, \(one[name] ?? "gone") at its owner")
            }
            for (number, device) in devices.prefix(2).enumerated() {
                let tags = Set(try await device.container.fetchAll(Tag.self).map(\.id)).union(participantTags)
                for stop in try await device.container.fetchAll(Stop.self) {
                    for tag in stop.tags.map(\.recordName) where !tags.contains(tag) {
                        problems.append("\(number): \(stop.id) refers to \(tag), which is nowhere")
                    }
                }
            }
            for device in devices {
                let report = try StoreVerification(of: device.container.directory).run()
                problems += report.problems.map(\.message)
            }
            if !problems.isEmpty {
                print("history \(seed):\n\(steps.joined(separator: "\n"))\n-> \(problems.joined(separator: "\n   "))")
            }
            return problems
        }
    }
}
