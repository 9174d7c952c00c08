// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
]

// The travel app as a package of its own, as yours would be. The repository's Package.swift builds the same sources, and runs the tests.
let package = Package(
    name: "Reisebuch",
    platforms: [.macOS(.v15)],
    products: [.library(name: "ReisebuchModel", targets: ["ReisebuchModel"])],
    dependencies: [
        // Without the trait `Server` nothing of the server is fetched or compiled.
        .package(name: "tidemark", path: "../..", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        // What an app's views are built on; no views, so that all of it is tested without them.
        .target(
            name: "ReisebuchModel", dependencies: [.product(name: "Tidemark", package: "tidemark")], swiftSettings: settings),
        .executableTarget(
            name: "reisebuch",
            dependencies: [
                "ReisebuchModel", .product(name: "TidemarkCloud", package: "tidemark"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], swiftSettings: settings),
        .testTarget(
            name: "ReisebuchTests",
            dependencies: [
                "ReisebuchModel", "reisebuch", .product(name: "Tidemark", package: "tidemark"),
                .product(name: "TidemarkCloud", package: "tidemark"), .product(name: "TidemarkTesting", package: "tidemark"),
            ], swiftSettings: settings),
    ])
