import Foundation
import Synchronization
import Tidemark
import TidemarkModel
import TidemarkStore

/// Makes and checks what `permissions.py` measures of the permission report; see README.md.
///
///     permissions-bench decide ROUNDS           prints nanoseconds of one decision for each round
///     permissions-bench report CONTAINER        streams a report; prints seconds, records, and how many may be edited
///     permissions-bench look-up CONTAINER COUNT prints microseconds of the report of one record, on the average
///     permissions-bench exact CONTAINER         streams reports until standard input ends; prints for each its seconds, and whether all of
///                                               it was of one moment
///     permissions-bench participant PERMISSION  prints the JSON of a participant, for shares that others write
@main
struct PermissionsBench {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst().map(\.self)
        switch (arguments.first, arguments.count) {
        case ("decide", 2): decide(rounds: Int(arguments[1])!)
        case ("report", 2): try await report(open(arguments[1]))
        case ("look-up", 3): try await lookUp(open(arguments[1]), count: Int(arguments[2])!)
        case ("exact", 2): try await exact(open(arguments[1]))
        case ("participant", 2): try participant(arguments[1])
        default:
            FileHandle.standardError.write(Data("usage: permissions-bench decide|report|look-up|exact|participant …\n".utf8))
            exit(64)
        }
    }

    private static func open(_ path: String) throws -> ReadOnlyContainer {
        try ReadOnlyContainer(directory: ContainerDirectory(openingAt: URL(fileURLWithPath: path)))
    }

    private static func seconds(_ clock: clockid_t = CLOCK_MONOTONIC) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func tell(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

    private static func decide(rounds: Int) {
        var actors: [SharePolicy.Actor] = [.owner, .stranger]
        for role in ShareParticipant.Role.allCases {
            for permission in ShareParticipant.Permission.allCases {
                for acceptance in ShareParticipant.AcceptanceStatus.allCases {
                    actors.append(.participant(role, permission, acceptance))
                }
            }
        }
        let targets = [true, false].map {
            SharePolicy.Target(scope: .shared, isShared: true, publicPermission: .readOnly, isRoot: $0)
        }
        let operations: [SharePolicy.Operation] = [.read, .update, .delete, .share]
        let turns = 5000
        for _ in 0..<rounds {
            var allowed = 0
            let start = seconds(CLOCK_THREAD_CPUTIME_ID)
            for _ in 0..<turns {
                for actor in actors {
                    for target in targets {
                        for operation in operations where SharePolicy.decide(operation, on: target, by: actor).isAllowed { allowed += 1 }
                    }
                }
            }
            let count = turns * actors.count * targets.count * operations.count
            let time = (seconds(CLOCK_THREAD_CPUTIME_ID) - start) / Double(count) * 1e9
            precondition(allowed > 0 && allowed < count)
            tell("\(time)")
        }
    }

    private static func report(_ journal: ReadOnlyContainer) async throws {
        let start = seconds()
        var (records, editable, letters) = (0, 0, 0)
        for try await permission in journal.permissions.report() {
            records += 1
            if permission.canEdit { editable += 1 }
            letters += permission.record.name.utf8.count
        }
        tell("\(seconds() - start) \(records) \(editable) \(letters)")
    }

    private static func lookUp(_ journal: ReadOnlyContainer, count: Int) async throws {
        var names: [RecordName] = []
        for try await permission in journal.permissions.report() {
            names.append(permission.record)
            if names.count == count { break }
        }
        names.shuffle()
        var editable = 0
        let start = seconds()
        for name in names where try await journal.permissions.permission(of: name)!.canEdit { editable += 1 }
        tell("\((seconds() - start) / Double(names.count) * 1e6) \(editable)")
    }

    private static let hasEnded = Atomic(false)

    /// Whoever writes names each share after the state that it belongs to, and in states of even numbers all may be edited.
    private static func exact(_ journal: ReadOnlyContainer) async throws {
        Thread.detachNewThread {
            while readLine() != nil {}
            hasEnded.store(true, ordering: .releasing)
        }
        tell("ready")
        var last = -1
        repeat {
            let start = seconds()
            var states: Set<Int> = []
            var (wrong, records) = (0, 0)
            for try await permission in journal.permissions.report(on: "Destination") where permission.scope == .shared {
                records += 1
                let state = permission.share.flatMap { Int($0) } ?? -1
                states.insert(state)
                if permission.canEdit != (state % 2 == 0) { wrong += 1 }
            }
            let state = states.first ?? -1
            let isExact = states.count == 1 && wrong == 0 && state >= last
            last = state
            tell("\(seconds() - start) \(isExact) \(state) \(records)")
        } while !hasEnded.load(ordering: .acquiring)
    }

    private static func participant(_ permission: String) throws {
        let permission: ShareParticipant.Permission = permission == "readWrite" ? .readWrite : .readOnly
        let participant = ShareParticipant(
            id: "me", identity: UserIdentity(userRecordName: "_me", name: PersonName(givenName: "Me")), role: .privateUser,
            permission: permission, acceptanceStatus: .accepted)
        tell(String(decoding: try JSONEncoder().encode(participant), as: UTF8.self))
    }
}
