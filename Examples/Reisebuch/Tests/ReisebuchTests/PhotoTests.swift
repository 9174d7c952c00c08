import Foundation
import ReisebuchModel
import Testing
import Tidemark
import TidemarkEmbeddedCloud
import TidemarkTesting

/// Pictures: what is made of them, and when they come to another device.
@Suite(.timeLimit(.minutes(30))) struct PhotoTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    private let sample = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("journal/pictures/reine.jpg")

    @Test func `a photo is taken in with a thumbnail, and a file that is no picture is refused`() async throws {
        let test = try await TestBook()
        let album = PhotoAlbum(of: test.stops[1], in: test.book)
        let photo = try await album.add(sample, caption: "Reine", takenAt: test.stops[1].arrival)
        let size = try #require(photo.imageThumbnail?.size)
        #expect(size > 1000 && size < 20_000 && size < (photo.image.size ?? 0))
        #expect(album.file(of: photo) == photo.image.fileURL)
        #expect(try await album.photos() == [photo])
        let text = folder.appendingPathExtension("txt")
        try Data("kein Bild".utf8).write(to: text)
        await #expect(throws: PictureError.self) { try await album.add(text, caption: "", takenAt: .now) }
        try FileManager.default.removeItem(at: text)
    }

    @Test func `a picture comes to another device when somebody looks at it, and goes when there is no room`() async throws {
        let cloud = try EmbeddedCloud(at: folder)
        let account = try await cloud.addAccount("anna@example.org")
        let databases = try cloud.databases(of: "org.example.reisebuch", account: account.id)
        let laptop = try await TestBook()
        let photo = try await PhotoAlbum(of: laptop.stops[1], in: laptop.book).add(sample, caption: "Reine", takenAt: .now)
        let environment = TestClock(movesWhenWaiting: true).environment
        let sending = try await laptop.container.sync(with: databases, environment: environment)
        #expect(try await sending.sync().isComplete)

        let tablet = try await TravelBook.temporary(device: "tablet")
        var configuration = SyncConfiguration()
        PhotoAlbum.configure(&configuration)
        let fetching = try await tablet.container.sync(with: databases, configuration: configuration, environment: environment)
        #expect(try await fetching.sync().isComplete)
        let album = PhotoAlbum(of: laptop.stops[1], in: tablet)
        let there = try #require(try await album.photos().first)
        #expect(!there.image.isDownloaded && album.file(of: there) == there.imageThumbnail?.fileURL)
        #expect(try await album.open(there) == photo.image.data())
        #expect(album.file(of: there) == there.image.fileURL)
        try await tablet.container.evict([there.image])
        #expect(!there.image.isDownloaded)
        try await album.prefetch([there])
        #expect(there.image.isDownloaded)
        try FileManager.default.removeItem(at: folder)
    }
}
