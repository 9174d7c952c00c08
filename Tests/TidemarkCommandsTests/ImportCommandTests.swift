import Foundation
import TestSupport
import Testing

/// Goal: the report of an import says what was read in an unexpected way, what was left out, and which option changes that.
/// Method: the tool, run on files as people have them.
@Suite(.timeLimit(.minutes(30))) struct ImportCommandTests {
    private let scratch = try! Scratch()

    private func run(_ arguments: String...) async throws -> Tool.Result {
        try await Tool().run(arguments.map { $0.hasPrefix("./") ? scratch[String($0.dropFirst(2))].path : $0 })
    }

    @Test func `two tables with the same ids are imported, and their records are found by id`() async throws {
        try scratch.write("id,name\n1,Ada\n2,Ben\n", to: "users.csv")
        try scratch.write("id,user,total\n1,2,9.5\n3,1,2\n", to: "orders.csv")
        #expect(try await run("import", "./users.csv", "--into", "./c.tidemark", "--type", "User", "--id", "id").status == 0)
        let orders = try await run(
            "import", "./orders.csv", "--into", "./c.tidemark", "--type", "Order", "--id", "id", "--reference", "user=User")
        #expect(orders.status == 0, "\(orders)")
        #expect(orders.output.contains("2 new, 0 updated, 0 unchanged, 0 refused"))
        #expect(orders.output.contains("New type Order: user reference, total double."))
        let listed = try await run("records", "./c.tidemark", "--type", "Order", "--where", "id = '3'", "--json")
        #expect(listed.output == "[\n{\"id\":\"3\",\"user\":\"User:1\",\"total\":2.0}\n]\n")
        let several = try await run("records", "get", "./c.tidemark", "1")
        #expect(several.status != 0)
        #expect(several.errors.contains("records of several types have the name '1': User/1, Order/1; write TYPE/NAME"))
        #expect(try await run("records", "get", "./c.tidemark", "Order/1").status == 0)
        #expect(try await run("records", "set", "./c.tidemark", "3", "total=7").output == "Order 3: changed\n")
        #expect(try await run("records", "set", "./c.tidemark", "4", "--type", "Order", "total=8").status == 0)
        let again = try await run("import", "./orders.csv", "--into", "./c.tidemark", "--type", "Order", "--id", "id", "--json")
        #expect(try again.json()["updated"] as? Int == 1)
        #expect(try await run("records", "delete", "./c.tidemark", "3").output == "deleted Order 3\n")
        let left = try await run("records", "./c.tidemark", "--type", "Order", "--json")
        #expect(left.output.contains(#"{"id":"4","total":8.0}"#))
    }

    @Test func `an import without ids says so once, with the columns that could be ids`() async throws {
        try scratch.write("title,book_id,shelf\nA,1,x\nB,2,x\n", to: "books.csv")
        let first = try await run("import", "./books.csv", "--into", "./c.tidemark", "--type", "Book")
        #expect(
            first.errors
                == "note: without --id, an edited row becomes a second record; --id book_id or --id title would tell the rows apart\n"
        )
        #expect(try await run("import", "./books.csv", "--into", "./c.tidemark", "--type", "Book").errors == "")
        try scratch.write("s\nx\nx\n", to: "none.csv")
        let none = try await run("import", "./none.csv", "--into", "./c.tidemark", "--type", "S")
        #expect(none.errors.contains("no column has a value of its own in each row"))
    }

    @Test func `an import of times without an offset names the time zone`() async throws {
        try scratch.write("id,when\n1,2024-05-01 12:30:00\n", to: "n.csv")
        let utc = try await run("import", "./n.csv", "--into", "./c.tidemark", "--type", "S", "--id", "id")
        #expect(utc.output.contains("New type S: when timestamp."))
        #expect(utc.errors == "note: times of 'when' have no offset and were read as UTC; --time-zone NAME says otherwise\n")
        for (zone, hour) in [("Europe/Berlin", "10:30"), ("+05:45", "06:45"), ("-03:00", "15:30")] {
            let result = try await run(
                "import", "./n.csv", "--into", "./c.tidemark", "--type", "S", "--id", "id", "--time-zone", zone)
            #expect(result.errors == "", "\(result)")
            let records = try await run("records", "./c.tidemark", "--type", "S", "--json")
            #expect(records.output.contains("2024-05-01T\(hour):00Z"), "\(zone): \(records.output)")
        }
        let wrong = try await run("import", "./n.csv", "--into", "./c.tidemark", "--type", "S", "--time-zone", "Mars")
        #expect(wrong.status == 64)
        #expect(wrong.errors.contains("there is no time zone 'Mars'"))
    }

    @Test func `options let an import read a spreadsheet's CSV of another country`() async throws {
        let text = "Nr;Ort;Preis;Datum\r\n1;K\u{f6}ln;1.234,50;01.05.2024 12:30\r\n2;Bergen;0,99;02.05.2024\r\n"
        try scratch.write(try #require(text.data(using: .windowsCP1252)), to: "preise.csv")
        let plain = try await run("import", "./preise.csv", "--into", "./c.tidemark", "--type", "Preis", "--id", "Nr")
        #expect(plain.status == 65)
        #expect(plain.errors.contains("add --delimiter ';'"), "\(plain.errors)")
        let read = try await run(
            "import", "./preise.csv", "--into", "./c.tidemark", "--type", "Preis", "--id", "Nr", "--delimiter", ";",
            "--decimal-comma",
            "--encoding", "windows-1252", "--time-zone", "Europe/Berlin")
        #expect(read.output.contains("New type Preis: Ort string, Preis double, Datum timestamp."), "\(read)")
        let records = try await run("records", "./c.tidemark", "--type", "Preis", "--json")
        #expect(records.output.contains(#"{"Nr":"1","Ort":"Köln","Preis":1234.5,"Datum":"2024-05-01T10:30:00Z"}"#))
        #expect(records.output.contains(#"{"Nr":"2","Ort":"Bergen","Preis":0.99,"Datum":"2024-05-01T22:00:00Z"}"#))
    }

    @Test func `files that are no photos are counted, and a single photo can be imported`() async throws {
        try scratch.write(Picture.png(1), to: "in/a.png")
        for name in ["b.mov", "c.bmp", "d.mov"] { try scratch.write("x", to: "in/\(name)") }
        let folder = try await run("import", "./in", "--into", "./p.tidemark")
        #expect(folder.output.contains("Passed over 3 files that are no photos: 2 mov, 1 bmp."), "\(folder)")
        let json = try await run("import", "./in", "--into", "./p.tidemark", "--json")
        #expect(try json.json()["passedOver"] as? [String: Int] == ["mov": 2, "bmp": 1])
        let one = try await run("import", "./in/a.png", "--into", "./p.tidemark")
        #expect(one.output.contains("0 new, 0 updated, 1 unchanged"), "\(one)")
        try scratch.write("", to: "empty.jpg")
        let empty = try await run("import", "./empty.jpg", "--into", "./p.tidemark")
        #expect(empty.status == 65)
        #expect(empty.errors.contains("'empty.jpg' is empty"))
    }

    @Test func `paths of files in a text field make a hint`() async throws {
        try scratch.write(Picture.png(1), to: "bilder/1.png")
        try scratch.write("id,Foto\n1,bilder/1.png\n", to: "reise.csv")
        let result = try await run("import", "./reise.csv", "--into", "./c.tidemark", "--type", "Reise", "--id", "id")
        #expect(
            result.errors
                == "note: the values of 'Foto' name files that are there, and --asset Foto was not given. To take the files in: "
                + "tidemark schema retype \(scratch.url.path)/c.tidemark --type Reise Foto asset --base \(scratch.url.path)\n")
        let misspelt = try await run("import", "./reise.csv", "--into", "./c.tidemark", "--type", "reise", "--id", "id")
        #expect(misspelt.status == 64)
        #expect(misspelt.errors.contains("differs from the record type 'Reise'"))
    }

    @Test func `rows with more fields than a type may have are bad data, and nothing of them is imported`() async throws {
        let rows = (1...300).map { #"{"id":"r\#($0)","f\#($0)":1}"# + "\n" }.joined()
        try scratch.write(rows, to: "wide.jsonl")
        let result = try await run("import", "./wide.jsonl", "--into", "./c.tidemark", "--type", "Wide", "--id", "id")
        #expect(result.status == 65, "\(result)")
        #expect(result.errors.contains("the record type 'Wide' would have 300 fields; at most 255 can be synchronised"))
    }
}
