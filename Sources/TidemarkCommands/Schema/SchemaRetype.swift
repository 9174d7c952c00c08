import ArgumentParser
import TidemarkModel
import TidemarkStore

struct SchemaRetype: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retype", abstract: "Gives a field another type, if every value converts.",
        discussion: """
            If a value can't be converted, the command lists these values with their records and the reasons, and changes nothing (exit \
            code 65). History keeps the values as they were.

            Whole numbers become doubles, and doubles without decimals whole numbers; numbers and times become texts. Texts become numbers, \
            times (ISO 8601), Booleans (true and false), references (names of records), bytes (Base64) and, with --base, assets: they \
            are paths of files in that folder. Any value becomes a list of one; a text that is a JSON array of strings becomes its \
            elements. A list of one becomes that value. An empty text becomes no value.

            A field keeps its type in the cloud. If the cloud has records of the type, give the field another name with --name. Where the cloud \
            has the field with another type than the container ('tidemark status' says so), the field can get the cloud's type: the next sync \
            sends the converted values and brings the cloud's. Of two values of one record the one that was edited later stays; a converted value \
            counts as edited now.

            Synchronise before a field gets another name: a record that comes from the cloud later keeps its value of the field there, under \
            the old name.

            Examples:
              tidemark schema retype MyJournal.tidemark --type Destination rating double --dry-run
              tidemark schema retype MyJournal.tidemark --type Destination rating double --name stars
              tidemark schema retype MyJournal.tidemark --type Trip photo asset --base ~/Pictures/Trip
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type.")
    var type: String

    @Argument(help: "The field.")
    var field: String

    @Argument(
        help: ArgumentHelp(
            "string, int64, double, boolean, timestamp, bytes, location, reference, asset or list<…>.", valueName: "new-type"))
    var newType: String

    @Option(help: "The new name of the field.")
    var name: String?

    @Option(
        help: ArgumentHelp("The folder of the files that texts name, for a field that becomes an asset.", valueName: "folder"))
    var base: String?

    @OptionGroup var changing: SchemaChanging

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: changing.dryRun)
            let known = KnownSchema(try StoreReader(container: directory).types())
            try known.check(field: field, of: known.type(named: type))
            let target = try Assignment.field(name ?? field, ofType: newType)
            try await changing.make(
                [.retypeField(field, of: type, to: target)], in: directory, command: "schema retype",
                files: base.map { try fileURL($0, "the folder") }
            ) {
                "Change \(field), by which \(Wording.count($0, "record")) with an empty value lose it? History keeps the values."
            }
        }
    }
}
