// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
]

// The web journal as a package of its own, as yours would be. The repository's Package.swift builds the same sources, and runs the tests.
let package = Package(
    name: "WebJournal",
    platforms: [.macOS(.v15)],
    dependencies: [
        // Without the trait `Server` nothing of Tidemark's own server is fetched or compiled.
        .package(name: "tidemark", path: "../..", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "webjournal",
            dependencies: [
                .product(name: "Tidemark", package: "tidemark"), .product(name: "TidemarkCloud", package: "tidemark"),
                .product(name: "TidemarkHTTP", package: "tidemark"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            resources: [
                .embedInCode("Resources/style.css"), .embedInCode("Resources/live.js"), .embedInCode("Resources/icon.svg"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "WebJournalTests",
            dependencies: [
                "webjournal",
                .product(name: "Tidemark", package: "tidemark"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: settings),
    ])
