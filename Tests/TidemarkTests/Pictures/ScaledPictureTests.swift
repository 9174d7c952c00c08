import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import Tidemark

/// Goal: a picture is scaled down, upright and without private metadata, off the caller's thread, and can be saved; a file that
/// can't be scaled is refused with a remedy. Method: pictures with known pixels; `Tests/CoreFuzz/picture_test.c` tests the core
/// with bytes.
@Suite(.timeLimit(.minutes(30))) struct ScaledPictureTests {
    private func bytes(_ asset: Asset?) throws -> [UInt8] { Array(try #require(asset).data()) }

    @Test func `a picture is scaled, and its thumbnail too`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write(DrawnPicture.png(1, width: 300, height: 200), to: "a.png")
        let picture = try await ScaledPicture(contentsOf: file, maxPixelSize: 90, quality: 0.7, thumbnailPixelSize: 30)
        #expect((picture.width, picture.height) == (90, 60))
        // Opaque: a JPEG.
        #expect(try bytes(picture.image).starts(with: [0xff, 0xd8, 0xff]))
        let small = try await ScaledPicture(data: #require(picture.thumbnail).data(), options: PictureOptions(quality: 1))
        #expect((small.width, small.height) == (30, 20))
        let same = try await ScaledPicture(contentsOf: file, maxPixelSize: 90, quality: 0.7, thumbnailPixelSize: 30)
        #expect(try bytes(same.image) == bytes(picture.image))
        #expect(try bytes(same.thumbnail) == bytes(picture.thumbnail))
        let never = try await ScaledPicture(contentsOf: file, maxPixelSize: 5_000)
        #expect((never.width, never.height) == (300, 200))
        #expect(never.thumbnail == nil)
    }

    @Test func `a picture with transparency stays a PNG`() async throws {
        let data = DrawnPicture.png(1, width: 100, height: 100, hasAlpha: true)
        let picture = try await ScaledPicture(data: data, options: PictureOptions(maxPixelSize: 50, thumbnailPixelSize: 10))
        #expect(try bytes(picture.image).starts(with: [0x89, 0x50, 0x4e, 0x47]))
        #expect(try bytes(picture.thumbnail).starts(with: [0x89, 0x50, 0x4e, 0x47]))
    }

    @Test func `a turned photo becomes upright, and its location is kept only on request`() async throws {
        let data = try await DrawnPicture.jpeg(1, width: 90, height: 60, exif: DrawnPicture.exif(orientation: 6))
        let picture = try await ScaledPicture(data: data, options: PictureOptions(maxPixelSize: 60))
        #expect((picture.width, picture.height) == (40, 60))
        #expect(picture.location == Location(latitude: 48, longitude: 11))
        let again = try await ScaledPicture(data: picture.image.data(), options: PictureOptions(maxPixelSize: 60))
        #expect((again.width, again.height) == (40, 60))
        #expect(again.location == nil)
        let kept = try await ScaledPicture(data: data, options: PictureOptions(maxPixelSize: 60, keepsLocation: true))
        let read = try await ScaledPicture(data: kept.image.data(), options: PictureOptions(maxPixelSize: 60))
        #expect(read.location == Location(latitude: 48, longitude: 11))
    }

    @Test func `making only a thumbnail leaves the picture as it is`() async throws {
        let scratch = try Scratch()
        let data = try await DrawnPicture.jpeg(1, width: 90, height: 60, exif: DrawnPicture.exif(orientation: 6))
        let file = try scratch.write(data, to: "a.jpg")
        let picture = try await ScaledPicture(contentsOf: file, options: PictureOptions(thumbnailPixelSize: 30))
        #expect(try picture.image.data() == data)
        #expect((picture.width, picture.height) == (60, 90))
        let small = try await ScaledPicture(data: #require(picture.thumbnail).data(), options: PictureOptions(quality: 1))
        #expect((small.width, small.height) == (20, 30))
        #expect(small.location == nil)
    }

    @Test func `a saved picture is fetched with its thumbnail`() async throws {
        let scratch = try Scratch()
        let picture = try await ScaledPicture(
            data: DrawnPicture.png(3, width: 200, height: 100), options: PictureOptions(maxPixelSize: 80, thumbnailPixelSize: 20))
        let journal = try scratch.journal()
        var senja = Illustrated(id: "senja")
        senja.image = picture.image
        senja.imageThumbnail = picture.thumbnail
        try await journal.save(senja)
        let fetched = try #require(try await journal.fetch(Illustrated.self, named: "senja"))
        #expect(fetched.image == picture.image)
        #expect(fetched.imageThumbnail == picture.thumbnail)
        #expect(try #require(fetched.imageThumbnail?.size) < #require(fetched.image?.size))
    }

    struct Illustrated: Record, Identifiable {
        var id: String
        var image: Asset?
        var imageThumbnail: Asset?
    }

    private func failure(_ body: () async throws -> ScaledPicture) async throws -> PictureError {
        do {
            _ = try await body()
        } catch let error as PictureError {
            return error
        }
        throw Unexpected()
    }

    private struct Unexpected: Error {}

    @Test func `a file that can't be scaled is refused with file, reason and remedy`() async throws {
        let scratch = try Scratch()
        let whole = try await DrawnPicture.jpeg(1)
        func refusal(_ data: Data) async throws -> PictureError {
            let file = try scratch.write(data, to: "in/picture")
            let error = try await failure { try await ScaledPicture(contentsOf: file, maxPixelSize: 50) }
            #expect(error.message.hasPrefix("\(file.path): "))
            #expect(error.recoverySuggestion != nil)
            return error
        }
        #expect(try await refusal(Data("GIF89a\u{1}\0\u{1}\0\0\0\0;".utf8)).code == .unsupported)
        #expect(try await refusal(Data()).code == .unsupported)
        #expect(try await refusal(whole.dropLast(20)).code == .damaged)
        // Its pixels are missing.
        #expect(try await refusal(Picture.png(1)).code == .damaged)
        let bomb = try await refusal(Picture.png(1, width: 60_000, height: 60_000))
        #expect(bomb.code == .tooLarge)
        #expect(bomb.message.contains("60000 x 60000 pixels; at most 250 million"))
        let missing = try await failure { try await ScaledPicture(contentsOf: scratch["none"], maxPixelSize: 50) }
        #expect(missing.code == .unreadable)
        let folder = try await failure { try await ScaledPicture(contentsOf: scratch.url, maxPixelSize: 50) }
        #expect(folder.code == .unreadable)
        for options in [
            PictureOptions(), PictureOptions(maxPixelSize: 0), PictureOptions(quality: 1.1), PictureOptions(quality: .nan),
            PictureOptions(thumbnailPixelSize: 70_000),
        ] {
            let error = try await failure { try await ScaledPicture(data: whole, options: options) }
            #expect(error.code == .options)
        }
    }

    @Test func `errors of pictures have German texts`() throws {
        ErrorLanguage.$override.withValue(.german) {
            let error = PictureError(.tooLarge, "in English")
            #expect(error.localizedDescription == "Das Bild ist zu groß.")
            #expect(error.failureReason == "in English")
            #expect(error.recoverySuggestion?.hasPrefix("Das Bild mit einem anderen Programm") == true)
            #expect(PictureError(.options, "in English").localizedDescription == "in English")
        }
        #expect(Set(PictureError.Code.englishRemedies.keys) == Set(PictureError.Code.germanRemedies.keys))
        #expect(Set(PictureError.Code.englishRemedies.keys).isSubset(of: PictureError.Code.german.keys))
    }
}
