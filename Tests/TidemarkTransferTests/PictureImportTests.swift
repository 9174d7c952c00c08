import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkStore

@testable import TidemarkTransfer

/// Goal: an import scales the pictures of its rows once, with the same result each time, and refuses unreadable ones. Method:
/// small pictures with known pixels; stores compared with that of an undisturbed run.
@Suite(.timeLimit(.minutes(30))) struct PictureImportTests {
    private let scratch = try! Scratch()
    private let both = PictureOptions(maxPixelSize: 40, quality: 0.8, thumbnailPixelSize: 16)

    private func options(_ pictures: PictureOptions?, _ change: (inout ImportOptions) -> Void = { _ in }) -> ImportOptions {
        .destination {
            $0.assetFields = ["image"]
            $0.pictures = pictures
            change(&$0)
        }
    }

    /// The value of a field in a line of `records`.
    private func identifiers(_ field: String, _ type: String = "Destination") throws -> [String] {
        try scratch.records(type).compactMap { line in
            line.split(separator: "\"\(field)\":\"asset:").dropFirst().first.map { String($0.prefix { $0 != "\"" }) }
        }
    }

    private func file(_ identifier: String) -> URL {
        scratch.container.appendingPathComponent("assets/\(identifier.prefix(2))/\(identifier)")
    }

    private func size(_ identifier: String) async throws -> [Int] {
        let picture = try await ScaledPicture(contentsOf: file(identifier), options: PictureOptions(quality: 1))
        return [picture.width, picture.height]
    }

    @Test func `pictures are scaled and get thumbnails beside them`() async throws {
        try scratch.write(DrawnPicture.png(1, width: 120, height: 60), to: "a.png")
        try scratch.write(DrawnPicture.png(2, width: 20, height: 10, hasAlpha: true), to: "b.png")
        let lines = [#"{"id":"a","image":"a.png"}"#, #"{"id":"b","image":"b.png"}"#, #"{"id":"c","image":null}"#, #"{"id":"d"}"#]
        let summary = try await scratch.importing(lines: lines, options(both))
        #expect(summary.changes == ChangeCounts(inserted: 4))
        let pictures = try #require(summary.pictures)
        #expect((pictures.scaled, pictures.untouched, pictures.thumbnails) == (2, 0, 2))
        #expect(pictures.bytesBefore > pictures.bytesAfter)
        let (images, thumbnails) = (try identifiers("image"), try identifiers("imageThumbnail"))
        #expect(try await size(images[0]) == [40, 20])
        #expect(try await size(images[1]) == [20, 10])
        #expect(try await size(thumbnails[0]) == [16, 8])
        #expect(try await size(thumbnails[1]) == [16, 8])
        #expect(pictures.bytesAfter == images.reduce(0) { $0 + Int($1.split(separator: "-")[1])! })
        let fields = try scratch.reader().type(named: "Destination").fields
        #expect(fields.contains(.init(name: "imageThumbnail", type: .asset)))
        #expect(try scratch.verification().isOK)
        // Importing the same again changes nothing.
        #expect(try await scratch.importing(lines: lines, options(both)).changes == ChangeCounts(unchanged: 4))
        // A scaled picture that is exported can be imported unchanged.
        try scratch.write(Data(contentsOf: file(images[0])), to: "a.png")
        #expect(try await scratch.importing(lines: [lines[0]], options(both)).assets.stored <= 1)
        #expect(try identifiers("image")[0] == images[0])
        // A picture that is removed takes its thumbnail with it.
        _ = try await scratch.importing(lines: [#"{"id":"a","image":null}"#], options(both))
        #expect(try identifiers("imageThumbnail") == [thumbnails[1]])
        #expect(try scratch.verification().isOK)
    }

    @Test func `a size, a quality or thumbnails can be requested alone`() async throws {
        let data = DrawnPicture.png(1, width: 120, height: 60)
        try scratch.write(data, to: "a.png")
        let lines = [#"{"id":"a","image":"a.png"}"#]
        _ = try await scratch.importing(lines: lines, options(PictureOptions(thumbnailPixelSize: 16)))
        #expect(try Data(contentsOf: file(identifiers("image")[0])) == data)
        #expect(try await size(identifiers("imageThumbnail")[0]) == [16, 8])
        let sized = try await scratch.importing(lines: lines, options(PictureOptions(maxPixelSize: 30)))
        #expect(try await size(identifiers("image")[0]) == [30, 15])
        #expect(sized.pictures?.thumbnails == 0)
        _ = try await scratch.importing(lines: lines, options(PictureOptions(quality: 0.5)))
        #expect(try await size(identifiers("image")[0]) == [120, 60])
        let coarse = try file(identifiers("image")[0])
        _ = try await scratch.importing(lines: lines, options(PictureOptions(quality: 0.9)))
        #expect(try Data(contentsOf: coarse).count < Data(contentsOf: file(identifiers("image")[0])).count)
    }

    @Test func `a dry run says which pictures would be made`() async throws {
        for number in 1...3 { try scratch.write(DrawnPicture.png(number, width: 120, height: 60), to: "\(number).png") }
        let lines = (1...3).map { #"{"id":"\#($0)","image":"\#($0).png"}"# }
        let dry = try await scratch.importing(lines: lines, options(both) { $0.isDryRun = true })
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
        let real = try await scratch.importing(lines: lines, options(both))
        #expect(dry.pictures == real.pictures)
        #expect(dry.assets == real.assets)
        #expect(dry.changes == real.changes)
        #expect(dry.pictures?.scaled == 3)
    }

    @Test func `other files are stored as they are, and damaged pictures are refused`() async throws {
        try scratch.write("text", to: "a.txt")
        try scratch.write(Data("GIF89a\u{1}\0\u{1}\0\0\0\0;".utf8), to: "b.gif")
        try scratch.write(Picture.png(1), to: "in/damaged.png")
        try scratch.write(Picture.png(1, width: 60_000, height: 50_000), to: "in/bomb.png")
        let lines = [
            #"{"id":"a","image":"a.txt"}"#, #"{"id":"b","image":"b.gif"}"#, #"{"id":"c","image":"in/damaged.png"}"#,
            #"{"id":"d","image":"in/bomb.png"}"#,
        ]
        let summary = try await scratch.importing(lines: lines, options(both) { $0.rejects = scratch["rejects.jsonl"] })
        #expect(summary.changes == ChangeCounts(inserted: 2))
        #expect(summary.pictures == PictureCounts(untouched: 2))
        let rejects = try scratch.rejects()
        #expect(rejects.map(\.code) == ["pictureDamaged", "pictureTooLarge"])
        #expect(rejects.map(\.line) == [3, 4])
        #expect(rejects.allSatisfy { $0.field == "image" })
        #expect(rejects[0].reason.hasPrefix("'in/damaged.png': the PNG is damaged"))
        #expect(rejects[1].reason.hasPrefix("'in/bomb.png': the picture has 60000 x 50000 pixels; at most 250 million"))
        #expect(try scratch.verification().isOK)
    }

    @Test func `a thumbnail field of another type ends the import before it begins`() async throws {
        try scratch.write(DrawnPicture.png(1), to: "a.png")
        _ = try await scratch.importing(lines: [#"{"id":"a","imageThumbnail":"small"}"#], .destination())
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id":"a","image":"a.png"}"#], options(both))
        }
        #expect(error?.code == .options)
        #expect(
            error?.message.hasPrefix("field 'imageThumbnail' of Destination is string, and thumbnails would go there") == true)
        await #expect(throws: ImportError(.options, "")) {
            try await scratch.importing(lines: [], options(PictureOptions(maxPixelSize: -1)))
        }
        let schema = [RecordTypeSchema(name: "Destination", fields: [.init(name: "image", type: .asset)])]
        let fixed = await #expect(throws: ImportError.self) {
            try await BulkImport(
                source: .file(scratch.writeLines([#"{"id":"a","image":"a.png"}"#], to: "m.jsonl")),
                into: scratch["fixed.tidemark"],
                options: options(both) {
                    $0.schema = schema
                    $0.environment = .production
                }
            ).run()
        }
        #expect(fixed?.message.contains("has no field 'imageThumbnail' for thumbnails") == true)
    }

    @Test func `a source that has thumbnails of its own keeps them`() async throws {
        try scratch.write(DrawnPicture.png(1, width: 120, height: 60), to: "a.png")
        try scratch.write(DrawnPicture.png(2, width: 12, height: 12), to: "own.png")
        let lines = [#"{"id":"a","image":"a.png"}"#, #"{"id":"b","image":"a.png","imageThumbnail":"own.png"}"#]
        let summary = try await scratch.importing(lines: lines, options(both))
        #expect(summary.changes == ChangeCounts(inserted: 2))
        let thumbnails = try identifiers("imageThumbnail")
        #expect(try await size(thumbnails[0]) == [16, 8])
        #expect(try await size(thumbnails[1]) == [12, 12])
        #expect(try !scratch.records("Destination").contains { $0.contains("ThumbnailThumbnail") })
    }

    @Test func `lists of pictures are scaled, without thumbnails`() async throws {
        for number in 1...2 { try scratch.write(DrawnPicture.png(number, width: 120, height: 60), to: "\(number).png") }
        let summary = try await scratch.importing(lines: [#"{"id":"a","image":["1.png","2.png"]}"#], options(both))
        #expect(summary.pictures?.scaled == 2)
        #expect(try scratch.reader().type(named: "Destination").fields.allSatisfy { $0.name != "imageThumbnail" })
        #expect(try scratch.verification().isOK)
    }

    @Test func `photos of a folder become upright, and their records stay the same in every size`() async throws {
        let exif = DrawnPicture.exif(orientation: 6)
        try scratch.write(await DrawnPicture.jpeg(1, width: 90, height: 60, exif: exif), to: "in/a.jpg")
        let whole = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo"))
        #expect(whole.pictures == nil)
        #expect(
            try scratch.records("Photo")[0].contains(#""width":60,"height":90,"position":{"latitude":48,"longitude":11}"#))
        var scaled = ImportOptions(type: "Photo")
        scaled.pictures = both
        let summary = try await scratch.importing(scratch["in"], scaled)
        #expect(summary.changes == ChangeCounts(updated: 1))
        #expect(summary.pictures?.scaled == 1)
        let record = try #require(try scratch.records("Photo").first)
        #expect(record.contains(#""width":27,"height":40,"position":{"latitude":48,"longitude":11}"#))
        #expect(try await size(identifiers("image", "Photo")[0]) == [27, 40])
        #expect(try await size(identifiers("imageThumbnail", "Photo")[0]) == [11, 16])
        #expect(try await scratch.importing(scratch["in"], scaled).changes == ChangeCounts(unchanged: 1))
    }

    @Test func `an interrupted import continues only with the same options, and ends in the same store`() async throws {
        let undisturbed = try Scratch()
        let lines = (0..<40).map { #"{"id":"\#($0)","image":"\#($0 % 12).png"}"# }
        for place in [scratch, undisturbed] {
            for number in 0..<12 { try place.write(DrawnPicture.png(number, width: 120, height: 60), to: "\(number).png") }
            try place.writeLines(lines, to: "manifest.jsonl")
        }
        let small = options(both) { $0.batchSize = 5 }
        let expected = try await undisturbed.importing(undisturbed["manifest.jsonl"], small)
        let session = try await ImportSession(
            source: .file(scratch["manifest.jsonl"]), container: scratch.container, options: small)
        let task = Task {
            try await session.run { if $0.summary.read >= 10 { withUnsafeCurrentTask { $0?.cancel() } } }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        await session.end(isWhole: false)
        var other = small
        (other.resumes, other.pictures) = (true, PictureOptions(maxPixelSize: 41))
        other.isDryRun = true
        #expect(try await scratch.importing(scratch["manifest.jsonl"], other).resumedAfter == nil)
        var resuming = small
        resuming.resumes = true
        let summary = try await scratch.importing(scratch["manifest.jsonl"], resuming)
        #expect((summary.resumedAfter ?? 0) >= 10)
        #expect(summary.pictures == expected.pictures)
        #expect(try scratch.records("Destination") == undisturbed.records("Destination"))
        #expect(try scratch.verification().isOK)
    }

    @Test func `a file of over 4 MiB is scaled from its file`() async throws {
        let data = DrawnPicture.png(1, width: 1_400, height: 1_100)
        #expect(data.count > 4 << 20)
        try scratch.write(data, to: "a.png")
        let summary = try await scratch.importing(lines: [#"{"id":"a","image":"a.png"}"#], options(both))
        #expect(summary.pictures?.bytesBefore == data.count)
        #expect(try await size(identifiers("image")[0]) == [40, 31])
        let whole = try await scratch.importing(
            lines: [#"{"id":"a","image":"a.png"}"#], options(PictureOptions(thumbnailPixelSize: 16)))
        // The file, and its thumbnail, which is made from the file and not from the scaled picture.
        #expect(whole.assets.stored == 2)
        #expect(try Data(contentsOf: file(identifiers("image")[0])) == data)
        #expect(try scratch.verification().isOK)
    }
}
