import ArgumentParser
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The name of a database, for `--scope`.
enum AdminScope: String, CaseIterable, ExpressibleByArgument {
    case `public`, `private`, shared

    var scope: DatabaseScope {
        switch self {
        case .public: .public
        case .private: .private
        case .shared: .shared
        }
    }
}

/// A zone of a database in a cloud.
struct AdminPlace: ParsableArguments {
    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: "development or production.")
    var environment: StoreEnvironment = .development

    @Option(name: .customLong("scope"), help: "The database. (default: public; private with --account)")
    var scopeName: AdminScope?

    var scope: DatabaseScope { scopeName?.scope ?? (account == nil ? .public : .private) }

    @Option(help: ArgumentHelp("Whose private or shared database.", valueName: "address"))
    var account: String?

    @Option(
        name: .customLong("zone"),
        help: ArgumentHelp(
            "The zone. (default: \(CloudZoneID.default.zoneName); all zones for 'tidemark admin shares')", valueName: "name"))
    var zoneName: String?

    var zone: String { zoneName ?? CloudZoneID.default.zoneName }

    @Option(help: ArgumentHelp("The user record name of the zone's owner, in a shared database.", valueName: "name"))
    var zoneOwner: String?

    func validate() throws {
        guard scope == .public || account != nil else {
            throw ValidationError("say whose \(scope.name) database: --account")
        }
        guard scope != .public || account == nil else {
            throw ValidationError("the public database is everybody's; --account is for --scope private or shared")
        }
        guard zoneOwner == nil || scope == .shared else { throw ValidationError("--zone-owner is for --scope shared") }
    }

    var place: RecordPlace {
        RecordPlace(
            container: container, environment: environment, scope: scope, account: account ?? "", zone: zone,
            zoneOwner: zoneOwner ?? "")
    }
}

extension AdminPlace {
    /// Returns a record.
    ///
    /// - Throws: If the zone does not have the record, an error with the options that name the database's other zones.
    func record(_ name: String, _ administration: Administration) async throws -> CloudRecord {
        do throws(AdministrationError) {
            return try await administration.record(name, in: place)
        } catch {
            guard error.code == .notFound, let others = try await otherZones(administration) else { throw error }
            throw ending("\(error.message); \(others)", .init(error))
        }
    }

    /// Returns the sentence that names the other zones of a private or shared database; `nil` where there are none.
    ///
    /// - Parameter isNoted: Whether this command's reading of the database is in the audit log already.
    func otherZones(_ administration: Administration, isNoted: Bool = false) async throws -> String? {
        guard scope != .public else { return nil }
        let options = try await administration.otherZones(than: place, isNoted: isNoted)
            .map { "--zone '\($0.zoneName)'" + (scope == .shared ? " --zone-owner \($0.ownerName)" : "") }
        return options.isEmpty ? nil : "the database has other zones: \(options.joined(separator: ", "))"
    }
}

struct AdminRecords: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "records", abstract: "Finds, shows, sets and deletes records of a cloud.",
        discussion: """
            The audit log has every change with the record before and after it, and every look into a private or shared database.

            Examples:
              tidemark admin records list --container journal --type City --data ~/cloud
              tidemark admin records show oslo --container journal --data ~/cloud
              tidemark admin records set oslo --container journal --type City title=Oslo --data ~/cloud
              tidemark admin records delete oslo --container journal --data ~/cloud
            """,
        subcommands: [AdminRecordsList.self, AdminRecordsShow.self, AdminRecordsSet.self, AdminRecordsDelete.self])
}

/// A condition: `title BEGINS_WITH Os`.
struct AdminFilter {
    let filter: RecordQuery.Filter

    static let comparators = CloudQuery.Comparator.allCases.map(\.rawValue).joined(separator: ", ")

    /// - Throws: `ValidationError` with the comparators.
    init(_ text: String) throws {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: true).map(String.init)
        guard parts.count >= 2 else {
            throw ValidationError("write a field, a comparator and a value, as in 'title BEGINS_WITH Os'")
        }
        guard let comparator = CloudQuery.Comparator(rawValue: parts[1].uppercased()) else {
            throw ValidationError("'\(parts[1])' is no comparator; comparators are \(Self.comparators)")
        }
        filter = RecordQuery.Filter(parts[0], comparator, parts.count == 3 ? parts[2] : "")
    }
}

struct AdminRecordsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the records that a query finds.",
        discussion: """
            A query needs the indexes that it would need over HTTP; 'tidemark admin schema index' adds them. Values are as in 'records \
            set'; of a comparator that takes several they stand between commas. The table has no fields whose names begin with 'tide_', \
            which devices keep for themselves; --json and 'records show' have them.

            Examples:
              tidemark admin records list --container journal --type City --data ~/cloud
              tidemark admin records list --container journal --type City \\
                  --filter 'title BEGINS_WITH Os' --sort -createdTimestamp --data ~/cloud
              tidemark admin records list --container journal --type Destination \\
                  --scope private --account anna@example.org --zone Trips --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("The record type.", valueName: "name"))
    var type: String

    @Option(
        help: ArgumentHelp(
            "A condition: a field, a comparator and a value; can be repeated. Comparators, as in CloudKit Web Services: "
                + "\(AdminFilter.comparators). NEAR takes latitude, longitude, metres.", valueName: "condition"),
        transform: { try AdminFilter($0) })
    var filter: [AdminFilter] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field to sort by, with - before it for the opposite order; can be repeated.", valueName: "field"))
    var sort: [String] = []

    @Option(help: ArgumentHelp("The maximum number of records.", valueName: "n"))
    var limit = 100

    @OptionGroup var zone: AdminPlace

    @OptionGroup var listing: AdminListing

    func validate() throws {
        guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit takes a number from 1 to 1000000") }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            let query = RecordQuery(
                type: type, filters: filter.map(\.filter),
                sorts: sort.map { $0.hasPrefix("-") ? .init(String($0.dropFirst()), isAscending: false) : .init($0) })
            var (records, continuation): ([CloudRecord], QueryContinuation?) = ([], nil)
            repeat {
                let page: Administration.RecordPage
                do throws(AdministrationError) {
                    page = try await administration.records(
                        query, in: zone.place, limit: min(limit - records.count, 200), continuation: continuation)
                } catch {
                    guard let index = error.index else { throw error }
                    let commands = try await remedy(for: index, administration)
                    throw ending("\(error.message); \(commands)", .init(error))
                }
                records += page.records
                for failure in page.failed { Output.error("damaged: \(failure.id.recordName)") }
                continuation = page.continuation
            } while continuation != nil && records.count < limit
            if listing.json {
                for record in records { try Output.write(Array("\(Administration.json(record))\n".utf8)) }
                return
            }
            guard !records.isEmpty else {
                try Output.line("no record is found")
                if let others = try await zone.otherZones(administration, isNoted: true) { Output.error(others) }
                return
            }
            let fields = Set(records.flatMap(\.fields.keys)).filter { !CloudRecord.isReserved($0) }.sorted()
            var table = TextTable(columns: ["name"] + fields + ["modified"])
            for record in records {
                let values = fields.map { record.fields[$0].map(FieldText.text) ?? "" }
                let modified = record.modified.map { Wording.moment(Timestamp.text(microseconds: $0.time)) } ?? ""
                try table.add([record.id.recordName] + values + [modified])
            }
            try table.finish()
        }
    }
}

extension AdminRecordsList {
    /// The commands that add an index that a query lacks. They also name the indexes that the field has, because a field gets
    /// exactly the named indexes.
    private func remedy(for missing: MissingIndex, _ administration: Administration) async throws -> String {
        let schema = try await administration.schema(of: zone.container, environment: .development)
        let known = schema.types[type]?.indexes(of: missing.field) ?? []
        let flags = CloudSchema.Index.allCases.filter { known.contains($0) || $0.rawValue == missing.index }.map {
            " --\($0.rawValue)"
        }
        let container = " --container \(zone.container)"
        let cloud = administration.placeOptions
        let add = "tidemark admin schema index\(container) --type \(type) --field \(missing.field)\(flags.joined())\(cloud)"
        guard zone.environment == .production else { return "add the index: \(add)" }
        return "add the index in development, and deploy the schema: \(add) && tidemark admin schema deploy\(container)\(cloud)"
    }
}

struct AdminRecordsShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows a record.",
        discussion: """
            Examples:
              tidemark admin records show oslo --container journal --data ~/cloud
              tidemark admin records show oslo --container journal --data ~/cloud --json
              tidemark admin records show Destination:senja --container journal \\
                  --account anna@example.org --zone TidemarkZone --data ~/cloud
            """)

    @Argument(help: "The record's name.")
    var name: String

    @OptionGroup var zone: AdminPlace

    @OptionGroup var place: AdminData

    @Flag(help: "Prints the record as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let record = try await zone.record(name, place.administration())
            if json { return try Output.write(Array("\(Administration.json(record))\n".utf8)) }
            var table = TextTable(columns: ["field", "type", "value"], cutsLast: false)
            try table.add(["recordName", "", record.id.recordName])
            try table.add(["recordType", "", record.type])
            try table.add(["recordChangeTag", "", record.changeTag ?? ""])
            if let parent = record.parent { try table.add(["parent", "", parent]) }
            for (what, stamp) in [("created", record.created), ("modified", record.modified)] {
                if let stamp { try table.add([what, "", "\(Timestamp.text(microseconds: stamp.time)) \(stamp.userRecordName)"]) }
            }
            for (field, value) in record.fields.sorted(by: { $0.key < $1.key }) {
                try table.add([field, "\(value.type)", FieldText.text(value)])
            }
            try table.finish()
        }
    }
}

struct AdminRecordsSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Makes a record, or sets fields of one.",
        discussion: """
            A field without a value loses the one that it has. The schema says what type a value is of: a time is ISO 8601, bytes are \
            base64, a location is 'latitude, longitude', a reference is a record's name, a list is a JSON array. In development, a field \
            that the schema lacks gets the type that is given after its name, as in days:int64=3 (string, int64 or int, double, boolean \
            or bool, timestamp or time, bytes, location, reference, asset, list<…>), else it becomes a string. It keeps that type.

            Examples:
              tidemark admin records set oslo --container journal --type City title=Oslo --data ~/cloud
              tidemark admin records set oslo --container journal visits:int64=3 --data ~/cloud
              tidemark admin records set oslo --container journal title= --data ~/cloud
            """)

    @Argument(help: "The record's name.")
    var name: String

    @Argument(help: ArgumentHelp("Fields with their values.", valueName: "field[:type]=value"))
    var fields: [String]

    @Option(help: ArgumentHelp("The record type, of a new record.", valueName: "name"))
    var type: String?

    @OptionGroup var zone: AdminPlace

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func validate() throws {
        guard fields.allSatisfy({ $0.contains("=") && !$0.hasPrefix("=") }) else {
            throw ValidationError("write each field as field=value")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            var record: CloudRecord
            do {
                record = try await administration.record(name, in: zone.place)
                guard type == nil || type == record.type else {
                    throw ending("\(name) is a \(record.type), and stays one; leave --type out", .usage)
                }
                record.fields = [:]
            } catch let error as AdministrationError where error.code == .notFound {
                guard let type else { throw ending("there is no record \(name); say which type it is to have: --type", .noInput) }
                record = CloudRecord(CloudRecordID(name, in: zone.place.zoneID), type: type)
            }
            let known = try await administration.schema(of: zone.container, environment: zone.environment).types[record.type]?
                .fields
            var cleared: Set<String> = []
            var made: [String: String] = [:]
            for assignment in try fields.map({ try Assignment($0) }) {
                let existing = known?[assignment.name]
                if let existing, let given = assignment.given, existing.fieldType != given.type {
                    throw assignment.refusal(existing.type, of: record.type)
                }
                guard let text = assignment.value else {
                    cleared.insert(assignment.name)
                    continue
                }
                let type = existing?.fieldType ?? assignment.given?.type ?? .string
                // A cloud stores Booleans as whole numbers.
                let number = assignment.given?.isBoolean == true ? ["true": "1", "false": "0"][text] : nil
                record.fields[assignment.name] = try FieldText.value(number ?? text, as: type, field: assignment.name)
                if existing == nil { made[assignment.name] = "\(type)" }
            }
            let isNew = record.changeTag == nil
            let saved = try await administration.save(record, clearing: cleared, in: zone.place)
            try outcome.tell(
                "admin records set",
                [
                    "record": saved.id.recordName, "type": saved.type, "isNew": isNew, "changeTag": saved.changeTag,
                    "newFields": made.isEmpty ? nil : made,
                ],
                text: "\(isNew ? "made" : "changed") \(saved.id.recordName)")
            guard !outcome.json, !made.isEmpty else { return }
            let fields = made.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            try Output.line("new in the schema: \(saved.type).\(fields.joined(separator: ", "))")
        }
    }
}

struct AdminRecordsDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Deletes a record.",
        discussion: """
            Records that refer to it with the action DELETE_SELF go with it.

            Examples:
              tidemark admin records delete oslo --container journal --data ~/cloud
            """)

    @Argument(help: "The record's name.")
    var name: String

    @OptionGroup var zone: AdminPlace

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let record = try await zone.record(name, administration)
            try await administration.delete(name, ifTag: record.changeTag, in: zone.place)
            try outcome.tell("admin records delete", ["record": name, "type": record.type], text: "deleted \(name)")
        }
    }
}
