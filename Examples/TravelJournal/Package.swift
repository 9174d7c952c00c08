// swift-tools-version: 6.1
import PackageDescription

// The journal as a package of its own, as an app would have it. The repository's Package.swift builds the same sources.
let package = Package(
    name: "TravelJournal",
    platforms: [.macOS(.v15)],
    dependencies: [
        // Without the trait `Server` nothing of the server is fetched or compiled.
        .package(name: "tidemark", path: "../..", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .executableTarget(
            name: "journal",
            dependencies: [
                .product(name: "Tidemark", package: "tidemark"), .product(name: "TidemarkCloud", package: "tidemark"),
                .product(name: "TidemarkHTTP", package: "tidemark"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ])
    ])
