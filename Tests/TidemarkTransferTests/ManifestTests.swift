import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: manifests become the records that the document of the format describes. Method: small manifests, whole stores compared.
@Suite(.timeLimit(.minutes(30))) struct ManifestTests {
    private func types(_ scratch: Scratch, _ name: String = "Destination") throws -> [String: String] {
        Dictionary(uniqueKeysWithValues: try scratch.reader().type(named: name).fields.map { ($0.name, $0.type.description) })
    }

    @Test func `types are inferred from the first batch in which a field occurs`() async throws {
        let scratch = try Scratch()
        let lines = [
            #"{"id": 1, "i": 1, "d": 1, "s": "a", "t": "2024-05-01T12:30:00+02:00", "b": true, "li": [1, 2], "ld": [1, 2.5]}"#,
            #"{"id": 2, "i": 2, "d": 2.5, "s": "2024-05-01T12:30:00Z", "t": "2024-05-01t12:30:00.123456789z", "b": 0, "late": null}"#,
            #"{"id": 3, "ls": ["a", "b"], "lt": ["2024-05-01T12:30:00Z"], "place": {"longitude": 2, "latitude": 1.5}, "le": []}"#,
        ]
        let summary = try await scratch.importing(lines: lines, .destination())
        #expect(summary.rejected == 0)
        #expect(
            try types(scratch) == [
                "i": "int64", "d": "double", "s": "string", "t": "timestamp", "b": "int64", "li": "list<int64>",
                "ld": "list<double>",
                "ls": "list<string>", "lt": "list<timestamp>", "place": "location", "le": "list<string>",
            ])
        #expect(
            try scratch.records("Destination") == [
                #"{"id":"1","i":1,"d":1.0,"s":"a","t":"2024-05-01T10:30:00Z","b":1,"li":[1,2],"ld":[1,2.5]}"#,
                #"{"id":"2","i":2,"d":2.5,"s":"2024-05-01T12:30:00Z","t":"2024-05-01T12:30:00.123456Z","b":0}"#,
                #"{"id":"3","ls":["a","b"],"lt":["2024-05-01T12:30:00Z"],"place":{"latitude":1.5,"longitude":2},"le":[]}"#,
            ])
        try await scratch.importing(lines: [#"{"id": 4, "late": "now"}"#], .destination())
        #expect(try types(scratch)["late"] == "string")
    }

    @Test func `an integer column becomes a double only if no integer loses precision`() async throws {
        let scratch = try Scratch()
        let summary = try await scratch.importing(
            lines: [#"{"id": "a", "n": 9007199254740993}"#, #"{"id": "b", "n": 0.5}"#, #"{"id": "c", "n": 9007199254740992}"#],
            .destination { $0.rejects = scratch["rejects.jsonl"] })
        #expect(summary.changes.inserted == 2)
        #expect(try types(scratch)["n"] == "double")
        #expect(try scratch.rejects().map { [$0.field ?? "", $0.code] } == [["n", "outOfRange"]])
    }

    @Test func `a later value that does not fit is refused, and one that fits without loss is stored`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        let summary = try await scratch.importing(
            lines: [#"{"id": "b", "n": 2.0}"#, #"{"id": "c", "n": 2.5}"#, #"{"id": "d", "n": "3"}"#], .destination())
        #expect(summary.changes.inserted == 1)
        #expect(summary.rejected == 2)
    }

    @Test func `a CSV is read by RFC 4180`() async throws {
        let scratch = try Scratch()
        let csv =
            "\u{feff}id,caption,n,when,code\r\n1,plain,5,2024-05-01T12:30:00Z,007\r\n"
            + "2,\"quoted, \"\"with\"\" comma\r\nand line end\",-6,,008\r\n3,\"\",7,2024-05-02T00:00:00Z,\n4,,8,,9"
        let summary = try await scratch.importing(try scratch.write(csv, to: "places.csv"), .destination())
        #expect(summary.rejected == 0)
        #expect(
            try scratch.records("Destination") == [
                #"{"id":"1","caption":"plain","n":5,"when":"2024-05-01T12:30:00Z","code":"007"}"#,
                #"{"id":"2","caption":"quoted, \"with\" comma\r\nand line end","n":-6,"code":"008"}"#,
                #"{"id":"3","caption":"","n":7,"when":"2024-05-02T00:00:00Z"}"#, #"{"id":"4","n":8,"code":"9"}"#,
            ])
    }

    @Test func `rows behind a malformed CSV row are read again as rows`() async throws {
        let scratch = try Scratch()
        let csv = "id,c\n1,a\n2,x,y\n3\n4,say \"hi\"\n5,\"a\"b\n6,\"open\n7,fine\n"
        let summary = try await scratch.importing(
            try scratch.write(csv, to: "places.csv"), .destination { $0.rejects = scratch["rejects.jsonl"] })
        #expect(try scratch.records("Destination") == [#"{"id":"1","c":"a"}"#, #"{"id":"7","c":"fine"}"#])
        #expect(summary.rejected == 5)
        #expect(
            try scratch.rejects().map { "\($0.line) \($0.code)" }
                == ["3 ragged", "4 ragged", "5 malformed", "6 malformed", "7 malformed"])
    }

    @Test(arguments: [
        ("id,a b\n1,2\n", "line 1: column 2, 'a b', cannot name a field"),
        ("id,a,a\n1,2,3\n", "line 1: columns 2 and 3 have the same name"),
        ("x,y\n1,2\n", "line 1: there is no column 'id'"), ("", "the source is empty"),
        ("id,sqlite_a\n1,2\n", "it begins with 'sqlite_', which SQLite keeps for itself"),
        ("id,Tide_a\n1,2\n", "it begins with 'tide_', which the store keeps for itself"),
        ("id,\(String(repeating: "n", count: 256))\n1,2\n", "it is longer than 255 bytes"),
        ("id,,b\n1,2,3\n", "line 1: column 2 has no name; give it one in the file"),
        ("id;a;b\n1;2;3\n", "if semicolons separate columns, add --delimiter ';'"),
        ("id\ta\n1\t2\n", "if tabs separate columns, add --delimiter tab"),
    ])
    func `a CSV with an unusable header is an error that names the column`(csv: String, message: String) async throws {
        let scratch = try Scratch()
        let file = try scratch.write(csv, to: "places.csv")
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(file, .destination()) }
        #expect(error?.code == .manifest)
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
    }

    @Test func `a field with an invalid name is refused with the reason`() async throws {
        let scratch = try Scratch()
        let names = ["sqlite_a", "TIDE_a", String(repeating: "n", count: 256), "a b", ""]
        try await scratch.importing(
            lines: names.map { #"{"id": "a", "\#($0)": 1}"# }, .destination { $0.rejects = scratch["rejects.jsonl"] })
        let reasons = [
            "begins with 'sqlite_'", "begins with 'tide_'", "longer than 255 bytes", "a letter, then letters, digits or '_'",
            "an empty name",
        ]
        let rejects = try scratch.rejects()
        #expect(rejects.map(\.code) == Array(repeating: "badIdentifier", count: 5))
        for (reject, reason) in zip(rejects, reasons) { #expect(reject.reason.contains(reason), "\(reject.reason)") }
    }

    @Test func `the summary names options without rows, and new types and fields of the schema`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        let options = ImportOptions.destination {
            $0.assetFields = ["image", "nope"]
            $0.mappings = [("text", "caption"), ("txt", "details")]
        }
        let first = try await scratch.importing(
            lines: [#"{"id": "a", "text": "one"}"#, #"{"id": "b", "image": null}"#, #"{"id": "c", "image": "1.png"}"#], options)
        #expect(first.absentAssetFields == ["nope"])
        #expect(first.absentMappings == ["txt"])
        #expect(
            first.newTypes == [
                RecordTypeSchema(
                    name: "Destination", nameField: "id",
                    fields: [.init(name: "image", type: .asset), .init(name: "caption", type: .string)])
            ])
        #expect(first.newFields.isEmpty)
        let csv = try scratch.write("id,image,txt,n\na,1.png,x,1\n", to: "more.csv")
        let second = try await scratch.importing(csv, options)
        #expect(second.absentAssetFields == ["nope"])
        #expect(second.absentMappings == ["text"])
        #expect(second.newTypes.isEmpty)
        #expect(second.newFields.map { $0.fields.map(\.name) } == [["details", "n"]])
        #expect(try await scratch.importing(csv, options).newFields.isEmpty)
    }

    @Test func `an asset field whose first value is a list holds lists`() async throws {
        let scratch = try Scratch()
        for number in 1...2 { try scratch.write(Picture.png(number), to: "\(number).png") }
        let rows = [
            #"{"id": "a", "n": 1}"#, #"{"id": "b", "pics": null}"#, #"{"id": "c", "pics": []}"#,
            #"{"id": "d", "pics": ["1.png", "2.png"]}"#, #"{"id": "e", "pics": "1.png"}"#, #"{"id": "f", "pics": [1]}"#,
        ]
        let options = ImportOptions.destination {
            $0.assetFields = ["pics"]
            $0.batchSize = 2
            $0.rejects = scratch["rejects.jsonl"]
        }
        let summary = try await scratch.importing(lines: rows, options)
        #expect(try scratch.rejects().map { "\($0.line) \($0.code)" } == ["5 wrongType", "6 wrongType"])
        #expect(summary.assets.stored == 2)
        #expect(try scratch.reader().type(named: "Destination").field(named: "pics")?.type == .list(of: .asset))
        // Another store imports the export without a schema.
        let (file, copy) = (scratch["export.jsonl"], try Scratch())
        let container = try ContainerDirectory(openingAt: scratch.container)
        _ = try BulkExport(from: container, type: "Destination", format: .jsonl, to: .file(file), assets: scratch["files"]).run()
        try await copy.importing(file, .destination { $0.assetFields = ["pics"] })
        #expect(try copy.records("Destination") == scratch.records("Destination"))
        #expect(try copy.verification().assets == 2)
    }

    @Test func `a list of assets in a CSV asks for a schema`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("id,pics\na,\"[\"\"1.png\"\"]\"\nb,[]\n", to: "in.csv")
        try await scratch.importing(
            file,
            .destination {
                $0.assetFields = ["pics"]
                $0.rejects = scratch["rejects.jsonl"]
            })
        #expect(try scratch.rejects().map(\.code) == ["wrongType", "wrongType"])
        #expect(try scratch.rejects()[0].reason.hasSuffix("list<asset> (--schema)"))
    }

    @Test(arguments: ["source", "format", "rejects", "assets", "name"])
    func `an unusable option is reported before a container is made`(what: String) async throws {
        let scratch = try Scratch()
        var options = ImportOptions.destination { $0.assetFields = ["image"] }
        switch what {
        case "format": options.format = .photos
        case "rejects": options.rejects = scratch["nowhere/rejects.jsonl"]
        case "assets": options.assetsRoot = scratch["nowhere"]
        case "name": options.assetFields = ["id"]
        default: break
        }
        let file = try scratch.writeLines([#"{"id": "a"}"#], to: "in.jsonl")
        await #expect(throws: ImportError.self) {
            try await scratch.importing(what == "source" ? scratch["nowhere.jsonl"] : file, options)
        }
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
    }

    @Test(arguments: ["[]", " [ ] ", "[{\"id\": \"a\"}]", "[\n{\"id\": \"a\"}\n,\n{\"id\": \"b\", \"c\": \"},]{\\\"[\"}\n]\n"])
    func `a JSON array is recognised by its first character`(text: String) async throws {
        let scratch = try Scratch()
        let summary = try await scratch.importing(try scratch.write(text, to: "places.json"), .destination())
        #expect(summary.rejected == 0)
        #expect(summary.read == text.components(separatedBy: "\"id\"").count - 1)
    }

    @Test(arguments: [
        "[{\"id\": \"a\"}", "[{\"id\": \"a\"}, {\"id\": ", "[{\"id\": \"a\"},", "[{\"id\": \"a\"}] {\"id\": \"b\"}",
        "[{\"id\": \"a\"} 5]",
    ])
    func `a JSON array with an error keeps the rows before it`(text: String) async throws {
        let scratch = try Scratch()
        let summary = try await scratch.importing(try scratch.write(text, to: "places.json"), .destination())
        #expect(summary.changes.inserted == 1)
        #expect(summary.rejected >= 1)
    }

    @Test(arguments: [
        "[{\"id\": \"a\"}}]", "[}", "[{\"id\": \"a\"}, }, ]", "[,]", "[]]", "[[[", "[\"", "[{", "]", "[{\"id\": \"a\"}}}}}}}}",
    ])
    func `misplaced brackets do not make the reading endless`(text: String) async throws {
        let scratch = try Scratch()
        let options = ImportOptions.destination { $0.format = .json }
        let summary = try? await scratch.importing(try scratch.write(text, to: "places.json"), options)
        #expect((summary?.rejected ?? 1) < 20)
    }

    @Test func `a last CSV row of one character is a row`() async throws {
        let scratch = try Scratch()
        let summary = try await scratch.importing(try scratch.write("id\na\n\r\nb", to: "places.csv"), .destination())
        // An empty line is one cell without a value here.
        #expect(summary.changes.inserted == 2)
    }

    @Test func `text after a list in a CSV cell is refused`() async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(
            name: "Destination", fields: [.init(name: "l", type: .list(of: .int64)), .init(name: "p", type: .location)])
        let csv = "id,l,p\na,[1] [2],\nb,,\"{\"\"latitude\"\":1,\"\"longitude\"\":2} x\"\nc,\"[9007199254740992]\",\n"
        let summary = try await scratch.importing(try scratch.write(csv, to: "places.csv"), .destination { $0.schema = [schema] })
        #expect(summary.rejected == 2)
        #expect(try scratch.records("Destination") == [#"{"id":"c","l":[9007199254740992]}"#])
    }

    @Test(arguments: [#"id" FROM Destination; DROP TABLE tide_meta; --"#, "Record ID", "_x", "é"])
    func `a name field that is no identifier is read, and not stored as the name field`(field: String) async throws {
        let scratch = try Scratch()
        let key = String(decoding: try JSONEncoder().encode(field), as: UTF8.self)
        try await scratch.importing(lines: ["{\(key): \"a\", \"n\": 1}"], .destination { $0.nameField = field })
        #expect(try scratch.records("Destination") == [#"{"_name":"a","n":1}"#])
        #expect(try scratch.verification().isOK)
    }

    @Test func `a field does not become the name field of a type that has it as a field`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], ImportOptions(type: "Destination"))
        try await scratch.importing(lines: [#"{"id": "b", "n": 2}"#], .destination())
        let records = try scratch.records("Destination")
        #expect(records.contains { $0.hasSuffix(#","id":"a","n":1}"#) })
        #expect(records.contains(#"{"_name":"b","n":2}"#))
    }

    @Test func `a new production container gets its schema from a file`() async throws {
        let scratch = try Scratch()
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id": "a"}"#], .destination { $0.environment = .production })
        }
        #expect(error?.code == .options)
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "n", type: .int64)])
        let lines = [#"{"id": "a", "n": 1}"#, #"{"id": "b", "m": 1}"#]
        let summary = try await scratch.importing(
            lines: lines,
            .destination {
                $0.environment = .production
                $0.schema = [schema]
            })
        #expect(summary.changes.inserted == 1)
        #expect(summary.rejected == 1)
    }

    @Test func `a mapping gives fields other names`() async throws {
        let scratch = try Scratch()
        let csv = "Key,Date Taken,Größe\nx,2024-05-01T12:30:00Z,5\n"
        try await scratch.importing(
            try scratch.write(csv, to: "places.csv"),
            .destination { $0.mappings = [("Key", "id"), ("Date Taken", "createdAt"), ("Größe", "size")] })
        #expect(try scratch.records("Destination") == [#"{"id":"x","createdAt":"2024-05-01T12:30:00Z","size":5}"#])
    }

    @Test func `without a name field names are derived from content, and importing again changes nothing`() async throws {
        let scratch = try Scratch()
        let lines = [#"{"caption": "a", "n": 1}"#, #"{"n": 2, "caption": "a"}"#, #"{"n": 1, "caption": "a"}"#]
        let options = ImportOptions(type: "Place")
        let first = try await scratch.importing(lines: lines, options)
        #expect(first.changes == ChangeCounts(inserted: 2, updated: 0, unchanged: 1))
        #expect(try await scratch.importing(lines: lines.reversed(), options).changes == ChangeCounts(unchanged: 3))
        let elsewhere = try Scratch()
        try await elsewhere.importing(lines: lines.reversed(), options)
        func names(_ scratch: Scratch) throws -> [String] {
            try scratch.records("Place").map { String($0.split(separator: "\"")[3]) }
        }
        #expect(try names(elsewhere) == names(scratch))
        // A UUID of version 8.
        #expect(try names(scratch).allSatisfy { $0.count == 36 && Array($0)[14] == "8" })
    }

    @Test func `in production an unknown field is refused and an unknown type is an error`() async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])
        try await scratch.importing(lines: [#"{"id": "a", "caption": "x"}"#], .destination { $0.schema = [schema] })
        let summary = try await scratch.importing(
            lines: [#"{"id": "b", "caption": "y"}"#, #"{"id": "c", "extra": 1}"#, #"{"id": "d", "extra": null}"#],
            .destination {
                $0.environment = .production
                $0.rejects = scratch["rejects.jsonl"]
            })
        #expect(summary.changes.inserted == 2)
        #expect(try scratch.rejects().map { [$0.field ?? "", $0.code] } == [["extra", "unknownField"]])
        #expect(try types(scratch) == ["caption": "string"])
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(
                lines: [#"{"id": "e"}"#],
                .destination {
                    $0.type = "Other"
                    $0.environment = .production
                })
        }
        #expect(error?.cause?.code == .schema)
        #expect(error?.message.contains("'Other'") == true)
    }

    @Test func `a production container cannot be opened for development`() async throws {
        let scratch = try Scratch()
        _ = try ContainerDirectory(openingOrCreatingAt: scratch.container, environment: .production)
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id": "e"}"#], .destination { $0.environment = .development })
        }
        #expect(error?.code == .options)
    }

    @Test(arguments: [
        (
            #"{"types": [{"name": "T", "fields": [{"name": "a", "type": "strng"}]}]}"#,
            "types[0].fields[0].type: 'strng' is no type"
        ),
        (#"{"types": [{"name": "T", "fields": [{"name": "a"}]}]}"#, "types[0].fields[0] lacks 'type'"),
        (#"{"types": [{"name": "sqlite_t", "fields": []}]}"#, "types[0].name: 'sqlite_t' cannot name a record type"),
        (
            #"{"types": [{"name": "T", "fields": [{"name": "a b", "type": "int64"}]}]}"#,
            "types[0].fields[0].name: 'a b' cannot name a field"
        ),
        (#"{"types": {}}"#, "types: "), ("nonsense", "the file: "),
        (
            #"{"types": [{"name": "T", "fields": [{"name": "a", "type": "int64"}, {"name": "a", "type": "int64"}]}]}"#,
            "types[0].fields[1].name"
        ),
    ])
    func `a fault in a schema file is reported with its place`(text: String, place: String) throws {
        let scratch = try Scratch()
        let file = try scratch.write(text, to: "schema.json")
        let error = #expect(throws: ImportError.self) { try SchemaFile.read(file) }
        #expect(error?.code == .schemaFile)
        #expect(error?.message.contains(place) == true, "\(error?.message ?? "")")
    }

    @Test func `values of all types are read as they were written`() async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(
            name: "Destination",
            fields: FieldType.Scalar.allCases.filter { $0 != .asset }.map { .init(name: $0.name, type: FieldType($0)) })
        let line =
            #"{"id":"a","string":"é\n\"\\","int64":-9223372036854775808,"double":0.1,"timestamp":"1969-12-31T23:59:59.5Z","#
            + #""bytes":"AAH/","location":{"latitude":-90,"longitude":180},"reference":"other"}"#
        try await scratch.importing(lines: [line], .destination { $0.schema = [schema] })
        #expect(try scratch.records("Destination") == [line.replacingOccurrences(of: "59.5Z", with: "59.500Z")])
    }
}
