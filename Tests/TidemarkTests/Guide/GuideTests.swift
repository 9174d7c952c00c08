import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkStore

/// Goal: the examples of the guides compile, and do what the guides say. Method: their blocks of Swift are looked up in the
/// sources of this folder, whose functions run against real containers.
@Suite(.timeLimit(.minutes(30))) struct GuideTests {
    typealias Destination = Guide.Destination

    static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    static let articles = repository.appendingPathComponent("Sources/Tidemark/Tidemark.docc")
    static let readMe = repository.appendingPathComponent("README.md")
    static let guides = repository.appendingPathComponent("Documentation/Guides")

    /// Examples of doc comments that don't compile as they are.
    static let exempt: Set<String> = [
        // The result is not used.
        "let before = try journal.snapshot()",
        // `nil` has no type.
        #"try await journal.updateAll(Destination.self, where: \.rating == nil, set: ["rating": 3])"#,
    ]

    private static func files(in folder: URL, _ pathExtension: String) throws -> [URL] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted().map { folder.appendingPathComponent($0) }
            .filter { $0.pathExtension == pathExtension }
    }

    /// The blocks of the README and of the guides.
    private static func pageExamples() throws -> [SwiftExample] {
        try ([readMe] + files(in: guides, "md")).flatMap { try SwiftExample.all(in: $0) }
    }

    private static func missing(_ examples: [SwiftExample]) throws -> [SwiftExample] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let sources = try files(in: folder, "swift").map { try SwiftExample.lines(of: $0) }
        return examples.filter { example in !sources.contains { example.isFound(in: $0) } }
    }

    // The text of the guides

    @Test func `every block of Swift in the articles, the guides and the README is in a source that is compiled`() throws {
        let articles = try Self.files(in: Self.articles, "md").flatMap { try SwiftExample.all(in: $0) }
        // Manifests are not compiled here; the test of the manifests checks them.
        let pages = try Self.pageExamples().filter { !$0.first.hasPrefix("// swift-tools-version") }
        #expect(articles.count > 15 && pages.count == 9)
        let missing = try Self.missing(articles + pages)
        #expect(missing == [])
    }

    @Test func `every example in the doc comments of the facade is in a source that is compiled`() throws {
        let examples = try Self.files(in: Self.repository.appendingPathComponent("Sources/Tidemark"), "swift")
            .flatMap { try SwiftExample.all(in: $0) }
        #expect(examples.count > 12)
        let missing = try Self.missing(examples.filter { !Self.exempt.contains($0.first) })
        #expect(missing == [])
    }

    @Test func `the manifests in the guides name products that exist`() throws {
        let manifest = try SwiftExample.lines(of: Self.repository.appendingPathComponent("Package.swift"))
        // A product with many targets has its name on a line of its own.
        let text = manifest.joined(separator: " ").replacing(".library( ", with: ".library(")
        let shown = try Self.pageExamples().filter { $0.first.hasPrefix("// swift-tools-version") }
        #expect(shown.count == 2)
        for line in shown.flatMap(\.paragraphs).joined() {
            for product in line.matches(of: /\.product\(name: "(\w+)", package: "tidemark"\)/) {
                #expect(text.contains(".library(name: \"\(product.1)\""), "\(product.1)")
            }
            if line.hasPrefix("platforms:") || line.hasPrefix("// swift-tools") { #expect(manifest.contains(line), "\(line)") }
        }
    }

    @Test func `every linked article exists, and the first page links to all`() throws {
        let articles = try Self.files(in: Self.articles, "md")
        let names = Set(articles.map { $0.deletingPathExtension().lastPathComponent })
        for article in articles {
            let text = try String(contentsOf: article, encoding: .utf8)
            let linked = Set(text.matches(of: /<doc:(\w+)>/).map { String($0.1) })
            #expect(linked.subtracting(names) == [])
            if article.lastPathComponent == "Tidemark.md" { #expect(linked == names.subtracting(["Tidemark"])) }
        }
    }

    // The behaviour: Coming from Core Data

    @Test func `records are added, fetched, counted and edited`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let photo = try scratch.write(Picture.png(1), to: "senja.png")
        let senja = try #require(try await Guide.add(photo, to: journal))
        try await journal.save([
            Destination(caption: "A fjord", rating: 4), Destination(caption: "Another fjord", rating: 5),
            Destination(caption: "A fjord in the rain", rating: 1),
        ])
        let found = try await Guide.fetch(journal)
        #expect(Set(found.newest) == ["Senja", "A fjord", "Another fjord", "A fjord in the rain"])
        #expect(found.good == ["Another fjord", "A fjord"])
        #expect(found.unrated == 1)
        #expect(try await Guide.average(journal) == 10.0 / 3)
        let result = try #require(try await Guide.edit(senja, in: journal))
        #expect(result.counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetch(Destination.self, id: senja.id)?.caption == "Senja in winter")
    }

    @Test func `a save that must lose nothing reports the conflict, and succeeds on top of the others' values`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var theirs = Destination(caption: "Senja", rating: 1)
        try await journal.save(theirs)
        let senja = theirs
        theirs.rating = 2
        theirs.details = "theirs"
        let saved = theirs
        var told: [RecordMerge.Unresolved] = []
        try await Guide.editOrTell(senja, in: journal, meanwhile: { try await journal.save(saved) }, tell: { told.append($0) })
        #expect(told.map(\.fields) == [["rating"]])
        let versions = try #require(told.first)
        #expect(
            [versions.ancestor, versions.local, versions.store].map { $0?.values["rating"] } == [.int64(1), .int64(5), .int64(2)])
        let now = try #require(try await journal.fetch(Destination.self, id: senja.id))
        #expect(now.rating == 5 && now.details == "theirs")
    }

    @Test func `batches return the names of their records, and history has them`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let token = try journal.history().historyToken()
        let many = [Destination(caption: "a", rating: 1), Destination(caption: "b", rating: 2), Destination(caption: "c")]
        let names = many.map(\.recordName)
        let changed = try await Guide.batches(journal, many)
        #expect(changed.map(Set.init) == [[names[2]], [names[0], names[1]]])
        let next = try await Guide.history(journal, since: token)
        #expect(try journal.history().changes(since: next).transactions == [])
        #expect(
            try journal.history().transactions().map { [$0.inserted, $0.updated, $0.deleted] }.reversed() == [
                [3, 0, 0], [0, 1, 0], [0, 0, 2],
            ])
    }

    @Test func `a deletion is undone`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let senja = Destination(caption: "Senja", rating: 5)
        try await journal.save(senja)
        try await Guide.deleteAndUndo(senja, in: journal)
        #expect(try await journal.fetch(Destination.self, id: senja.id)?.rating == 5)
    }

    @Test func `a trip is shown with its stops and their photos, and deleted with them`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let trip = Models.Trip(title: "Norway")
        let stops = (1...3).map { Models.Stop(trip: Reference(trip), day: $0) }
        try await journal.save([trip] + stops + [Models.Photo(stop: Reference(stops[1]))])
        var shown: [[Int]] = []
        try await Models.along(trip, in: journal) { shown.append([$0.day, $1.count, $2]) }
        #expect(shown == [[1, 0, 0], [2, 1, 1], [3, 0, 0]])
        try await Models.declare(journal)
        try await Models.delete(trip, in: journal)
        #expect(try await journal.count(Models.Photo.self) == 0)
    }

    @Test func `the policy of a type can name one for each field`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var mine = Guide.Visit(destination: Reference("senja"), nights: 1)
        try await journal.save(mine)
        let context = journal.newContext()
        _ = try await context.fetch(Guide.Visit.self, named: mine.recordName)
        var theirs = mine
        (theirs.nights, theirs.notes) = (4, "theirs")
        try await journal.save(theirs)
        (mine.nights, mine.notes) = (2, "mine")
        try await context.update(mine)
        try await context.save()
        let visit = try #require(try await journal.fetch(Guide.Visit.self, id: mine.id))
        #expect(visit.nights == 4 && visit.notes == "mine")
    }

    @Test func `blank captions and unchanged edits are refused, and records of one unique key are merged`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        await #expect(throws: ValidationError.self) { try await journal.save(Destination(caption: " ")) }
        let senja = Destination(createdAt: Date(timeIntervalSince1970: 1_700_000_000), caption: "Senja")
        try await journal.save(senja)
        await #expect(throws: ValidationError("nothing was changed")) { try await journal.save(senja) }
        try await journal.save([Guide.Tag(word: "fjord"), Guide.Tag(word: "fjord"), Guide.Tag(word: "ice")])
        #expect(Set(try await journal.fetchAll(Guide.Tag.self).map(\.word)) == ["fjord", "ice"])
        #expect(try await journal.count(Guide.Tag.self) == 2)
    }

    @Test func `a new property is optional or in the prototype, and its type stays`() async throws {
        enum Next {
            struct Destination: Tidemark.Record, Identifiable {
                static let recordType = "Destination"
                var id = UUID()
                var caption: String
                var altitude: Double?
            }
        }
        enum Stricter {
            struct Destination: Tidemark.Record, Identifiable {
                static let recordType = "Destination"
                var id = UUID()
                var altitude = 0.0
            }
        }
        enum Other {
            struct Destination: Tidemark.Record, Identifiable {
                static let recordType = "Destination"
                var id = UUID()
                var caption = 1
            }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let senja = Destination(caption: "Senja")
        try await journal.save(senja)
        #expect(try await journal.fetch(Next.Destination.self, id: senja.id)?.altitude == nil)
        await #expect(throws: DecodingError.self) { try await journal.fetch(Stricter.Destination.self, id: senja.id) }
        try await journal.save(Next.Destination(id: senja.id, caption: "Senja", altitude: 12))
        #expect(try await journal.fetch(Stricter.Destination.self, id: senja.id)?.altitude == 12)
        await #expect(throws: StoreError(.schema, "")) { try await journal.save(Other.Destination()) }
    }

    @Test func `a name is unique across types, and a container's save overwrites without a conflict`() async throws {
        struct Place: Tidemark.Record {
            var id: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal(mergePolicy: .error)
        let senja = Destination(caption: "Senja")
        try await journal.save(senja)
        await #expect(throws: StoreError(.invalid, "")) { try await journal.save(Place(id: senja.recordName)) }
        try await journal.save(Destination(id: senja.id, caption: "Senja, anew"))
        #expect(try await journal.fetch(Destination.self, id: senja.id)?.caption == "Senja, anew")
    }

    @Test func `a context's fetch does not find records or values that are only in the context`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Destination(caption: "stored"))
        let context = journal.newContext()
        let new = Destination(caption: "new")
        await context.insert(new)
        #expect(try await context.fetchAll(Destination.self).map(\.caption) == ["stored"])
        #expect(try await context.fetch(Destination.self, named: new.recordName) == new)
        var edited = try #require(try await context.fetchAll(Destination.self).first)
        edited.caption = "edited"
        try await context.update(edited)
        #expect(try await context.fetchAll(Destination.self, where: \.caption == "stored").map(\.caption) == ["edited"])
        #expect(try await context.fetchAll(Destination.self, where: \.caption == "edited") == [])
    }

    // One container, two stores

    @Test(.timeLimit(.minutes(30))) func `both stores are read as one, followed, and pinned`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let list = await MainActor.run { Guide.DestinationList() }
        let following = Task { try await list.follow(journal) }
        let observed = await Guide.observe(journal)
        let all = try await Guide.useBothStores(journal, scratch.acceptedShare())
        #expect(Set(all.map(\.caption)) == ["Senja", "Ada's Lofoten"])
        while await list.destinations.count != 2 { await Task.yield() }
        while await observed.records.count != 2 { await Task.yield() }
        let (count, newest) = try await Guide.pin(journal)
        #expect(count == 2 && newest.map(\.id) == all.map(\.id))
        following.cancel()
        _ = await following.result
    }

    // Reading from a widget

    @Test(.timeLimit(.minutes(30))) func `a widget finds the container, reads it and is notified of changes`() async throws {
        let scratch = try Scratch()
        let place = scratch["Library/store/Journal.tidemark"]
        try FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
        let app = try PersistentContainer(directory: ContainerDirectory(openingOrCreatingAt: place))
        try await app.save(
            (0..<5).map { n in
                Destination(
                    createdAt: Date(timeIntervalSince1970: Double(n)), caption: "\(n)", image: Asset(data: Picture.png(n)))
            })
        let group = StoreLocation.directory(scratch["elsewhere"])
        let journal = try #require(try Guide.find(group, under: scratch.url))
        let pictures = try await Guide.newest(journal).map { try $0.map { try Data(contentsOf: $0) } }
        #expect(pictures == [4, 3, 2].map { Picture.png($0) })
        let token = try #require(try Guide.hasChanged(journal, since: nil))
        #expect(try Guide.hasChanged(journal, since: token) == nil)
        let (heard, continuation) = AsyncStream.makeStream(of: Set<String>.self)
        let following = Task { try await Guide.follow(journal) { continuation.yield(Set($0.changes.map(\.record.name))) } }
        // Each save makes another record, because the follower may begin after some of them.
        let saving = Task {
            var n = 0
            while !Task.isCancelled {
                try await app.save(Destination(caption: "new \(n)"))
                n += 1
                await Task.yield()
            }
        }
        for await names in heard {
            #expect(names.count == 1)
            break
        }
        saving.cancel()
        try? await saving.value
        following.cancel()
        _ = await following.result
        #expect(try Guide.hasChanged(journal, since: token) != nil)
    }

    // Sharing with people

    @Test func `a destination is shared, accepted, edited and added to, and refused saves are reported`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination(caption: "Senja")
        try await anna.container.save(senja)
        let link = try await Guide.share(senja, in: anna.container, anna.databases)
        try await anna.sync()
        let share = try await Guide.accept("journal://\(link)", in: ben.container, ben.databases)
        try await ben.sync()
        var edited = senja
        edited.caption = "Senja, by Ben"
        let record = RecordName(type: "Destination", name: senja.recordName)
        var isSaved = false
        try await Guide.ask(record, in: ben.container) { isSaved = true }
        #expect(isSaved)
        try await Guide.save(edited, in: ben.container)
        try await Guide.add(Destination(caption: "A beach"), to: share, in: ben.container)
        try Guide.tellRefused(ben.container)
        try await ben.sync()
        try await anna.sync()
        #expect(Set(try await anna.container.fetchAll(Destination.self).map(\.caption)) == ["Senja, by Ben", "A beach"])
    }

    // App and extension

    @Test(.timeLimit(.minutes(30)))
    func `an app is notified of its extension's commits, and continues where it stopped`() async throws {
        let scratch = try Scratch()
        let app = try scratch.journal()
        let shareExtension = try PersistentContainer(directory: app.directory, author: "share extension", role: .extension)
        let tokenFile = scratch["token"]
        let (bad, good) = (Destination(caption: "bad", rating: 1), Destination(caption: "good", rating: 5))
        try await app.save([bad, good])
        let context = app.newContext()
        _ = try await context.fetchAll(Destination.self)
        // Earlier changes are not reported.
        try JSONEncoder().encode(app.historyToken()).write(to: tokenFile)

        // The app does not listen now.
        #expect(try await Guide.clearUp(shareExtension) == [bad.recordName])
        var edited = good
        edited.caption = "better"
        try await shareExtension.save(edited)
        try await app.save(Destination(caption: "its own"))
        #expect(
            try await Guide.refresh(context) == [
                RecordName(type: "Destination", name: bad.recordName), RecordName(type: "Destination", name: good.recordName),
            ])
        #expect(try await context.fetch(Destination.self, named: good.recordName)?.caption == "better")

        let (heard, continuation) = AsyncStream.makeStream(of: ContainerChange.self)
        let following = Task {
            try await Guide.follow(app, from: tokenFile, show: { continuation.yield($0) }, showEverything: {})
            continuation.finish()
        }
        var changes: [ContainerChange] = []
        for await change in heard {
            changes.append(change)
            if changes.count == 2 { break }
        }
        following.cancel()
        try await following.value
        #expect(changes.map(\.transaction.author) == ["share extension", "share extension"])
        #expect(changes.map(\.origin) == [.anotherProcess, .anotherProcess])
        #expect(changes.map { Guide.names($0).0 } == [[bad.recordName], []])
        #expect(changes.map { Guide.names($0).1 } == [[], [good.recordName]])
    }

    @Test func `a follower that returns after a purge starts again`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let tokenFile = scratch["token"]
        try await journal.save(Destination(caption: "a"))
        try JSONEncoder().encode(journal.historyToken()).write(to: tokenFile)
        try await journal.save(Destination(caption: "b"))
        try await journal.save(Destination(caption: "c"))
        try await journal.purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
        var isStartedAnew = false
        try await Guide.follow(journal, from: tokenFile, show: { _ in }, showEverything: { isStartedAnew = true })
        #expect(isStartedAnew)
        #expect(!FileManager.default.fileExists(atPath: tokenFile.path))
    }
}
