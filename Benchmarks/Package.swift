// swift-tools-version: 6.1

import PackageDescription

// A package of its own, so that whoever uses Tidemark never builds it.
let package = Package(
    name: "tidemark-benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "grdb-peer", targets: ["grdb-peer"]),
        .executable(name: "permissions-bench", targets: ["permissions-bench"]),
        .executable(name: "store-bench", targets: ["store-bench"]),
        .executable(name: "sync-bench", targets: ["sync-bench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(name: "tidemark", path: "..", traits: []),
    ],
    targets: [
        .executableTarget(
            name: "store-bench",
            dependencies: [.product(name: "GRDB", package: "GRDB.swift"), .product(name: "Tidemark", package: "tidemark")],
            path: "Store", swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "permissions-bench", dependencies: [.product(name: "Tidemark", package: "tidemark")], path: "Permissions",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "sync-bench", dependencies: [.product(name: "Tidemark", package: "tidemark")], path: "Sync",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "grdb-peer", dependencies: [.product(name: "GRDB", package: "GRDB.swift")], path: "Peers/GRDBPeer"),
    ]
)
