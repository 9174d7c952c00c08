public import ArgumentParser
import Foundation
public import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

extension PermissionFilter: ExpressibleByArgument {}

struct Permissions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows your permissions for records, and the reasons.",
        discussion: """
            For each record the command shows its share's owner, your role, permission and acceptance, whether you may edit, delete and \
            share it, and the rule that decides. The report is as of the last sync; the cloud decides when you make a change. All \
            records of a store are reported as of one moment. The command only reads the container.

            The command names missing records at the end (exit code 66). With --only, 'read-only' selects records that you may read but \
            not edit, 'owned' your own records, and 'shared' records in shares, your own or others'.

            Examples:
              tidemark permissions MyJournal.tidemark
              tidemark permissions MyJournal.tidemark lofoten senja
              tidemark permissions MyJournal.tidemark --type Destination --only read-only
              tidemark permissions MyJournal.tidemark --as csv > permissions.csv
              tidemark permissions MyJournal.tidemark --as json | jq -r 'select(.canDelete).record'
            """)

    enum Format: String, CaseIterable, ExpressibleByArgument {
        case table, json, csv
    }

    @Argument(help: "The container.")
    var container: String

    @Argument(help: ArgumentHelp("The records: names, or TYPE/NAME. (default: all records)", valueName: "record"))
    var names: [String] = []

    @Option(help: "Only records of this type.")
    var type: String?

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("table, json (one JSON object per line) or csv.", valueName: "format"))
    var format: Format = .table

    @Flag(help: "As '--as json'.")
    var json = false

    @Option(help: ArgumentHelp("Only records that are editable, read-only, owned or shared.", valueName: "kind"))
    var only: PermissionFilter?

    func validate() throws {
        if json, format == .csv { throw ValidationError("--json and '--as csv' exclude each other") }
    }

    func run() async throws {
        try await reportingErrors {
            let journal = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: fileURL(container, "the container")))
            if let type { try check(type, in: journal) }
            var lines = PermissionLines(json ? .json : format)
            let missing = try await names.isEmpty ? all(journal, &lines) : named(journal, &lines)
            try lines.finish()
            if let first = missing.first {
                let others = missing.count > 1 ? " and \(missing.count - 1) more" : ""
                throw StoreError(
                    .notFound, "there is no record '\(first)'\(type.map { " of type \($0)" } ?? "")\(others)")
            }
        }
    }

    private func all(_ journal: ReadOnlyContainer, _ lines: inout PermissionLines) async throws -> [String] {
        let report = type.map { journal.permissions.report(on: $0, only: only) } ?? journal.permissions.report(only: only)
        for try await permission in report { try lines.add(permission) }
        return []
    }

    /// - Returns: The names that no record has.
    private func named(_ journal: ReadOnlyContainer, _ lines: inout PermissionLines) async throws -> [String] {
        var missing: [String] = []
        for name in names {
            var found = try await journal.permissions.permissions(named: name, type: type)
            if found.isEmpty, type == nil, let slash = name.firstIndex(of: "/") {
                found = try await journal.permissions.permissions(
                    named: String(name[name.index(after: slash)...]), type: String(name[..<slash]))
            }
            if found.isEmpty {
                let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
                if let record = try FoundRecord(name, type: type, in: nil, of: directory) {
                    found = try await journal.permissions.permissions(named: record.record.name, type: record.schema.name)
                }
            }
            if found.isEmpty { missing.append(name) }
            for permission in found where only?.includes(permission) ?? true { try lines.add(permission) }
        }
        return missing
    }

    private func check(_ type: String, in journal: ReadOnlyContainer) throws {
        let readers = [StoreScope.private, .shared].compactMap { journal.history($0) }
        let types = try readers.flatMap { try $0.types().map(\.name) }
        guard !types.contains(type) else { return }
        let known = Set(types).sorted().joined(separator: ", ")
        throw StoreError(
            .schema, "the container has no record type '\(type)'; it has \(known.isEmpty ? "none yet" : known)")
    }
}

/// Prints the permissions of records, one record a line.
///
/// Many records differ only in their names. The rest of a line is made once for each set of equal permissions.
struct PermissionLines {
    private let format: Permissions.Format
    private var table = TextTable(columns: ["record", "type"] + Self.columns, cutsLast: false)
    private var buffer: [UInt8] = []
    /// The rests of lines, up to ``restLimit``. Later ones are made for each record: a cache that evicts old entries takes a
    /// fifth of the command's time, because this code is not optimised. Each entry keeps its object, so that no other object gets
    /// the same address.
    private var rests: [ObjectIdentifier: (effective: EffectivePermission, rest: Rest)] = [:]
    private static let restLimit = 10_000

    private enum Rest {
        case cells([String])
        case bytes([UInt8])
    }

    /// The columns after the record's name and type, without those of its place.
    private static let columns = [
        "shared", "owner", "role", "permission", "acceptance", "edit", "delete", "share", "reason",
    ]
    private static let bufferSize = 1 << 18

    init(_ format: Permissions.Format) {
        self.format = format
        if format == .table { return }
        buffer.reserveCapacity(Self.bufferSize + 4096)
        guard format == .csv else { return }
        buffer += Array((["type", "record", "scope", "zone"] + Self.columns).joined(separator: ",").utf8) + Self.lineEnd
    }

    mutating func add(_ permission: RecordPermission) throws {
        let (record, rest) = (permission.record, try rest(of: permission))
        switch (format, rest) {
        case (.table, .cells(let cells)): try table.add([record.shortName, record.type] + cells)
        case (.json, .bytes(let bytes)):
            JSONWriter.append(to: &buffer) { json in
                json.object {
                    $0.member("type", record.type)
                    $0.member("record", record.name)
                    $0.members(encoded: bytes)
                }
            }
            buffer.append(0x0a)
        case (.csv, .bytes(let bytes)):
            RecordText.appendCell(record.type, to: &buffer)
            buffer.append(UInt8(ascii: ","))
            RecordText.appendCell(record.name, to: &buffer)
            buffer += bytes
        default: break
        }
        if buffer.count >= Self.bufferSize {
            try Output.write(buffer)
            buffer.removeAll(keepingCapacity: true)
        }
    }

    mutating func finish() throws {
        if format == .table { return try table.finish() }
        try Output.write(buffer)
        buffer = []
    }

    private mutating func rest(of permission: RecordPermission) throws -> Rest {
        let id = ObjectIdentifier(permission.effective)
        if let known = rests[id] { return known.rest }
        let rest: Rest =
            switch format {
            case .table: .cells(Self.cells(permission))
            case .csv: .bytes(Self.csv(permission))
            case .json: .bytes(Self.json(permission))
            }
        if rests.count < Self.restLimit { rests[id] = (permission.effective, rest) }
        return rest
    }

    private static func cells(_ it: RecordPermission) -> [String] {
        [
            word(it.isShared), it.owner?.title ?? "", it.role.title, it.permission.title, it.acceptanceStatus.title,
            word(it.canEdit), word(it.canDelete), word(it.canShare), it.reason,
        ]
    }

    private static func word(_ holds: Bool) -> String { holds ? "yes" : "no" }

    private static func csv(_ permission: RecordPermission) -> [UInt8] {
        var bytes: [UInt8] = []
        for cell in [permission.scope.name, permission.zone.name] + cells(permission) {
            bytes.append(UInt8(ascii: ","))
            if !cell.isEmpty { RecordText.appendCell(cell, to: &bytes) }
        }
        return bytes + lineEnd
    }

    /// The members that `--as json` prints for a record, without its type and name.
    private static func json(_ it: RecordPermission) -> [UInt8] {
        let edit = it.decision(for: .update)
        return JSONWriter.encoded { json in
            json.member("acceptance", it.acceptanceStatus.title)
            json.member("canDelete", it.canDelete)
            json.member("canEdit", it.canEdit)
            json.member("canRead", it.canRead)
            json.member("canShare", it.canShare)
            json.member("owner", it.owner?.title)
            json.member("permission", it.permission.title)
            json.member("reason", edit.reason)
            json.member("remedy", edit.remedy?.rawValue)
            json.member("role", it.role.title)
            json.member("rule", edit.rule.rawValue)
            json.member("scope", it.scope.name)
            json.member("share", it.share)
            json.member("shared", it.isShared)
            json.member("zone", it.zone.name)
            // The owner's name in the cloud container. `owner` is their name for people.
            json.member("zoneOwner", it.zone.owner)
        }
    }

    private static let lineEnd: [UInt8] = [0x0d, 0x0a]
}
