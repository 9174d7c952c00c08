// swift-tools-version: 6.1

import PackageDescription

/// With TIDEMARK_WARNINGS=error, which CI sets, warnings in this package's targets are errors, except those about deprecated
/// declarations of dependencies. It is not the default, because packages that depend on this one, and newer compilers, must be
/// able to build it.
let warnings: [SwiftSetting] =
    Context.environment["TIDEMARK_WARNINGS"] == "error"
    ? [.unsafeFlags(["-warnings-as-errors", "-Wwarning", "DeprecatedDeclaration"])] : []

let strict: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
    ] + warnings

/// The settings of the modules whose imports have an access level: `public` if the module's interface names the import, `package`
/// if only other modules of this package see it, and none if it is internal. Each file imports all modules that it uses.
let layered: [SwiftSetting] =
    strict + [.enableUpcomingFeature("InternalImportsByDefault"), .enableUpcomingFeature("MemberImportVisibility")]

/// The condition of the dependencies that only the server and its tests need. Without the trait `Server` they are neither fetched
/// nor compiled. Targets can't have such a condition, so a build without the trait has to name a product. A build of all
/// products, or of the tests, needs the trait.
let served: TargetDependencyCondition? = .when(traits: ["Server"])

let core: [CSetting] = [.define("_GNU_SOURCE", .when(platforms: [.linux]))]

let package = Package(
    name: "tidemark",
    // The oldest versions that the API needs. Documentation/Guides/Install.md lists what is built on each system, and what iOS
    // lacks.
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(
            name: "Tidemark",
            targets: ["Tidemark", "TidemarkCloud", "TidemarkContainers", "TidemarkStore", "TidemarkSync", "TidemarkModel"]),
        .library(name: "TidemarkStore", targets: ["TidemarkContainers", "TidemarkStore", "TidemarkModel"]),
        .library(name: "TidemarkTransfer", targets: ["TidemarkTransfer"]),
        .library(
            name: "TidemarkCloud", targets: ["TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel"]),
        .library(name: "TidemarkSync", targets: ["TidemarkSync", "TidemarkCloud", "TidemarkModel", "TidemarkStore"]),
        .library(name: "TidemarkTesting", targets: ["TidemarkTesting"]),
        .library(name: "TidemarkHTTP", targets: ["TidemarkHTTP", "TidemarkCloud", "TidemarkModel"]),
        .library(name: "TidemarkServer", targets: ["TidemarkServer"]),
        .executable(name: "tidemark", targets: ["tidemark"]),
        .executable(name: "tidemark-server", targets: ["tidemark-server"]),
    ],
    traits: [
        .default(enabledTraits: ["Server"]),
        .trait(name: "Server", description: "The server and its dependencies; programs that only use the library do without it."),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // C modules: system libraries, then the package's own.
        .systemLibrary(
            name: "CSQLite", path: "CSupport/CSQLite", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .systemLibrary(
            name: "CXXHash", path: "CSupport/CXXHash", pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]),
        .systemLibrary(
            name: "CSimdJSON", path: "CSupport/CSimdJSON",
            providers: [.apt(["libsimdjson-dev"]), .brew(["simdjson"])]),
        .systemLibrary(
            name: "CExif", path: "CSupport/CExif", pkgConfig: "libexif",
            providers: [.apt(["libexif-dev"]), .brew(["libexif"])]),
        .systemLibrary(
            name: "CJPEG", path: "CSupport/CJPEG", pkgConfig: "libjpeg",
            providers: [.apt(["libjpeg-dev"]), .brew(["jpeg-turbo"])]),
        .systemLibrary(
            name: "CPNG", path: "CSupport/CPNG", pkgConfig: "libpng",
            providers: [.apt(["libpng-dev"]), .brew(["libpng"])]),
        .systemLibrary(
            name: "CArchive", path: "CSupport/CArchive", pkgConfig: "libarchive",
            providers: [.apt(["libarchive-dev"]), .brew(["libarchive"])]),
        .systemLibrary(name: "CMalloc", path: "CSupport/CMalloc"),
        .systemLibrary(
            name: "COpenSSL", path: "CSupport/COpenSSL", pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        .systemLibrary(
            name: "CZlib", path: "CSupport/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
        .systemLibrary(
            name: "CCurl", path: "CSupport/CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(
            name: "CPostgres", path: "CSupport/CPostgres", pkgConfig: "libpq",
            providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        .systemLibrary(
            name: "CQREncode", path: "CSupport/CQREncode", pkgConfig: "libqrencode",
            providers: [.apt(["libqrencode-dev"]), .brew(["qrencode"])]),
        .target(
            name: "CTideCore", dependencies: ["CSQLite", "CXXHash"], path: "CSupport/CTideCore", cSettings: core,
            linkerSettings: [
                .linkedLibrary("sqlite3"), .linkedLibrary("xxhash"), .linkedLibrary("pthread", .when(platforms: [.linux])),
            ]),
        .target(
            name: "CTidePictures", dependencies: ["CTideCore", "CExif", "CJPEG", "CPNG", "CZlib"], path: "CSupport/CTidePictures",
            cSettings: core,
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png"), .linkedLibrary("exif"), .linkedLibrary("z"),
                .linkedLibrary("m", .when(platforms: [.linux])),
            ]),
        .target(
            name: "CTideManifest",
            dependencies: [
                "CTideCore", "CTidePictures", "CSimdJSON", "CArchive", "CZlib",
                .target(name: "COpenSSL", condition: .when(platforms: [.linux])),
                "CXXHash",
            ],
            path: "CSupport/CTideManifest", cSettings: core,
            linkerSettings: [
                .linkedLibrary("simdjson"), .linkedLibrary("crypto", .when(platforms: [.linux])),
                .linkedLibrary("xxhash"), .linkedLibrary("archive"), .linkedLibrary("z"),
                .linkedLibrary("iconv", .when(platforms: [.macOS, .iOS])),
            ]),

        // Values and rules, without I/O.
        .target(
            name: "TidemarkModel", dependencies: [.target(name: "COpenSSL", condition: .when(platforms: [.linux]))],
            swiftSettings: layered),
        // Database files that several processes open: files, locks, connections, logs, notifications of changes.
        .target(
            name: "TidemarkSQLite",
            dependencies: ["CTideCore", "TidemarkModel", .product(name: "GRDB", package: "GRDB.swift")],
            swiftSettings: layered),
        // A store and its blobs, in a container.
        .target(
            name: "TidemarkStore",
            dependencies: [
                "CTideCore", "TidemarkModel", "TidemarkSQLite", .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: layered),
        // Containers as a whole: finding, moving, backing up, verifying, setting aside.
        .target(
            name: "TidemarkContainers",
            dependencies: [
                "CTideCore", "TidemarkModel", "TidemarkSQLite", "TidemarkStore", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: layered),
        // The interface of a cloud, whatever implements it.
        .target(
            name: "TidemarkCloud", dependencies: ["TidemarkModel"], swiftSettings: layered),
        // The rules of a cloud, over protocols for its storage.
        .target(
            name: "TidemarkCloudEngine",
            dependencies: [
                "CTideCore", .target(name: "COpenSSL", condition: .when(platforms: [.linux])), "TidemarkCloud", "TidemarkModel",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: layered),
        // A cloud in a directory: SQLite and files.
        .target(
            name: "TidemarkEmbeddedCloud",
            dependencies: [
                "CTideCore", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkModel", "TidemarkSQLite",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: layered),
        // PostgreSQL: connections, transactions, migrations, notifications. Only the server's product needs it.
        .target(
            name: "TidemarkPostgres",
            dependencies: [
                .target(name: "CPostgres", condition: served), "TidemarkCloud", "TidemarkCloudEngine", "TidemarkModel",
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: layered),
        // The messages of CloudKit Web Services, which a client and a server exchange.
        .target(
            name: "CTideJSON", dependencies: ["CSimdJSON"], path: "CSupport/CTideJSON",
            linkerSettings: [.linkedLibrary("simdjson")]),
        .target(
            name: "TidemarkWire", dependencies: ["CTideJSON", "CZlib", "TidemarkCloud", "TidemarkModel"],
            swiftSettings: layered),
        // The credentials of a served cloud: passwords, tokens, keys and sessions.
        .target(
            name: "TidemarkIdentity",
            dependencies: [
                "COpenSSL", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel", "TidemarkSQLite",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: layered),
        // The actions of a served cloud's administrators, for the commands and the console.
        .target(
            name: "TidemarkAdministration",
            dependencies: [
                "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkIdentity", "TidemarkModel",
                "TidemarkSQLite", "TidemarkWire",
            ],
            swiftSettings: layered),
        // The console's pages. They do not depend on the server. Only the server's product needs them.
        .target(
            name: "TidemarkConsole",
            dependencies: [
                .target(name: "CQREncode", condition: served), "TidemarkAdministration", "TidemarkCloud", "TidemarkCloudEngine",
                "TidemarkEmbeddedCloud", "TidemarkIdentity", "TidemarkModel", "TidemarkOpenID", "TidemarkWire",
            ],
            swiftSettings: layered),
        // The client of a cloud behind HTTP.
        .target(
            name: "TidemarkHTTP",
            dependencies: [
                "CCurl", "TidemarkCloud", "TidemarkModel", "TidemarkWire",
                .target(name: "COpenSSL", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: layered),
        // Stores the contents of assets in a bucket.
        .target(
            name: "TidemarkS3",
            dependencies: [
                "TidemarkCloud", "TidemarkCloudEngine", "TidemarkHTTP", "TidemarkModel",
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: layered),
        // Sends letters to people.
        .target(name: "TidemarkMail", dependencies: ["CCurl", "TidemarkModel"], swiftSettings: layered),
        // Signs people in with an identity provider.
        .target(
            name: "TidemarkOpenID", dependencies: ["COpenSSL", "TidemarkCloud", "TidemarkHTTP", "TidemarkModel"],
            swiftSettings: layered),
        // The HTTP server of a cloud.
        .target(
            name: "TidemarkServer",
            dependencies: [
                "TidemarkAdministration", "TidemarkConsole", "TidemarkIdentity", "TidemarkCloud", "TidemarkCloudEngine",
                "TidemarkEmbeddedCloud", "TidemarkMail", "TidemarkModel", "TidemarkOpenID",
                "TidemarkPostgres", "TidemarkS3", "TidemarkSQLite",
                "TidemarkWire", .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: served),
                .product(name: "Hummingbird", package: "hummingbird", condition: served),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: served),
                .product(name: "HummingbirdTLS", package: "hummingbird", condition: served),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics", condition: served),
                .product(name: "NIOCore", package: "swift-nio", condition: served),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: served),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: served),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: served),
                .product(name: "NIOPosix", package: "swift-nio", condition: served),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: served),
                .product(name: "NIOTLS", package: "swift-nio", condition: served),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: served),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: served),
            ],
            resources: [.embedInCode("Resources/openapi.json")],
            swiftSettings: layered),
        // Synchronises a store with a cloud.
        .target(
            name: "TidemarkSync",
            dependencies: [
                "TidemarkCloud", "TidemarkModel", "TidemarkSQLite", "TidemarkContainers", "TidemarkStore",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: layered),
        // For users' own tests.
        .target(
            name: "TidemarkTesting", dependencies: ["TidemarkCloud", "TidemarkModel", "TidemarkSync"], swiftSettings: layered),
        // The interface for programs: containers of typed records.
        .target(
            name: "Tidemark",
            dependencies: [
                "CTidePictures", "TidemarkCloud", "TidemarkModel", "TidemarkSQLite", "TidemarkContainers", "TidemarkStore",
                "TidemarkSync",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: layered),
        // Bulk import and export.
        .target(
            name: "TidemarkTransfer",
            dependencies: [
                "CTideManifest", "CTidePictures", "TidemarkModel", "TidemarkSQLite", "TidemarkContainers", "TidemarkStore",
            ],
            swiftSettings: layered),
        // The command-line tool's commands. Other modules do the work, so optimising this one costs a sixth of the tool's build
        // and makes nothing faster. No library product contains this target, because packages can't depend on products with
        // unsafe flags.
        .target(
            name: "TidemarkCommands",
            dependencies: [
                "Tidemark", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel", "TidemarkSQLite",
                "TidemarkContainers", "TidemarkStore",
                "TidemarkSync",
                "TidemarkAdministration", "TidemarkIdentity", "TidemarkHTTP", "TidemarkTransfer", "TidemarkWire",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: layered + [.unsafeFlags(["-Onone"], .when(configuration: .release))]),
        .executableTarget(
            name: "tidemark",
            dependencies: ["TidemarkCommands", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            swiftSettings: layered),

        // The server, which the tool starts. Users of the tool alone need not build it. It also runs the commands that administer
        // a cloud in a database, so that the tool does not need libpq.
        .executableTarget(
            name: "tidemark-server",
            dependencies: [
                "CMalloc", "TidemarkCommands", "TidemarkEmbeddedCloud", "TidemarkMail", "TidemarkOpenID", "TidemarkServer",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: served),
                .product(name: "NIOPosix", package: "swift-nio", condition: served),
            ],
            swiftSettings: layered),

        // An example, which is also a package of its own.
        .executableTarget(
            name: "journal",
            dependencies: [
                "Tidemark", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkHTTP",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/TravelJournal/Sources/journal",
            swiftSettings: strict),

        // A travel app, which is also a package of its own.
        .target(
            name: "ReisebuchModel", dependencies: ["Tidemark"], path: "Examples/Reisebuch/Sources/ReisebuchModel",
            swiftSettings: strict + [.enableUpcomingFeature("MemberImportVisibility")]),
        .executableTarget(
            name: "reisebuch",
            dependencies: [
                "ReisebuchModel", "Tidemark", "TidemarkEmbeddedCloud",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/Reisebuch/Sources/reisebuch",
            swiftSettings: strict + [.enableUpcomingFeature("MemberImportVisibility")]),
        .testTarget(
            name: "ReisebuchTests",
            dependencies: [
                "ReisebuchModel", "Tidemark", "TidemarkEmbeddedCloud", "TidemarkTesting", "reisebuch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/Reisebuch/Tests/ReisebuchTests",
            swiftSettings: strict + [.enableUpcomingFeature("MemberImportVisibility")]),

        // A web application, which is also a package of its own. It uses this package like any other package does.
        .executableTarget(
            name: "webjournal",
            dependencies: [
                "Tidemark", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkHTTP",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: served),
                .product(name: "Hummingbird", package: "hummingbird", condition: served),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: served),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: served),
            ],
            path: "Examples/WebJournal/Sources/webjournal",
            resources: [
                .embedInCode("Resources/style.css"), .embedInCode("Resources/live.js"), .embedInCode("Resources/icon.svg"),
            ],
            packageAccess: false,
            swiftSettings: strict + [.enableUpcomingFeature("MemberImportVisibility")]),

        .testTarget(
            name: "WebJournalTests",
            dependencies: [
                "webjournal", "Tidemark",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: served),
                .product(name: "NIOCore", package: "swift-nio", condition: served),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: served),
            ],
            path: "Examples/WebJournal/Tests/WebJournalTests",
            packageAccess: false,
            swiftSettings: strict + [.enableUpcomingFeature("MemberImportVisibility")]),

        // Tests.
        .target(
            name: "TestSupport",
            dependencies: [
                "TestServers", "Tidemark", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel",
                "TidemarkSQLite",
                "TidemarkContainers", "TidemarkStore",
                "TidemarkSync",
                "COpenSSL", "TidemarkHTTP", "TidemarkTesting", "TidemarkTransfer", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: "Tests/TestSupport",
            swiftSettings: strict),
        .executableTarget(
            name: "change-poster", dependencies: ["TidemarkModel", "TidemarkSQLite", "TidemarkStore"], path: "Tests/ChangePoster",
            swiftSettings: strict),
        .executableTarget(
            name: "store-probe",
            dependencies: [
                "TestSupport", "TidemarkCommands", "TidemarkModel", "TidemarkSQLite", "TidemarkContainers", "TidemarkStore",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: "Tests/StoreProbe", swiftSettings: strict),
        .executableTarget(
            name: "journal-probe", dependencies: ["TestSupport", "Tidemark", "TidemarkModel", "TidemarkSQLite", "TidemarkStore"],
            path: "Tests/JournalProbe",
            swiftSettings: strict),
        .executableTarget(
            name: "sync-probe",
            dependencies: [
                "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkHTTP", "TidemarkModel",
                "TidemarkSQLite", "TidemarkStore",
                "TidemarkSync",
                "TidemarkTesting", .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: "Tests/SyncProbe", swiftSettings: strict),
        .executableTarget(
            name: "sharing-probe",
            dependencies: [
                "TestSupport", "Tidemark", "TidemarkCloud", "TidemarkHTTP", "TidemarkModel",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/SharingProbe", swiftSettings: strict),
        .testTarget(
            name: "TidemarkCloudTests",
            dependencies: ["TestSupport", "TidemarkCloud", "TidemarkEmbeddedCloud", "TidemarkModel", "TidemarkTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkCloudEngineTests",
            dependencies: [
                "TestSupport", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel",
                "TidemarkTesting",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkEmbeddedCloudTests",
            dependencies: [
                "TestSupport", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel", "TidemarkSQLite",
                "TidemarkStore", "TidemarkTesting", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkS3Tests",
            dependencies: [
                "TestServers", "TestSupport", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkHTTP",
                "TidemarkModel", "TidemarkS3",
            ],
            swiftSettings: strict),
        .target(
            name: "TestServers", dependencies: ["TidemarkModel", .product(name: "Metrics", package: "swift-metrics")],
            path: "Tests/TestServers", swiftSettings: strict),
        .testTarget(
            name: "TidemarkPostgresTests",
            dependencies: [
                "TestServers", "TestSupport", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkIdentity",
                "TidemarkModel", "TidemarkPostgres", "TidemarkTesting",
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkTestingTests",
            dependencies: [
                "TestSupport", "TidemarkCloud", "TidemarkEmbeddedCloud", "TidemarkModel", "TidemarkSync", "TidemarkTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkHTTPTests",
            dependencies: [
                "TestSupport", "TidemarkCloud", "TidemarkHTTP", "TidemarkModel", "TidemarkSQLite", "TidemarkStore",
                "TidemarkTesting",
                .product(name: "NIOCore", package: "swift-nio", condition: served),
                .product(name: "NIOPosix", package: "swift-nio", condition: served),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: served),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkSQLiteTests",
            dependencies: [
                "TestSupport", "TidemarkModel", "TidemarkSQLite", "TidemarkStore", "WALReset", "change-poster",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkWireTests", dependencies: ["TidemarkCloud", "TidemarkModel", "TidemarkWire"], swiftSettings: strict),
        .testTarget(
            name: "TidemarkIdentityTests",
            dependencies: [
                "COpenSSL", "TestSupport", "TidemarkIdentity", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud",
                "TidemarkModel", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkOpenIDTests", dependencies: ["TestSupport", "TidemarkModel", "TidemarkOpenID"], swiftSettings: strict),
        .testTarget(
            name: "TidemarkConsoleTests",
            dependencies: [
                .target(name: "CQREncode", condition: served), "TestSupport", "TidemarkAdministration", "TidemarkCloud",
                "TidemarkCloudEngine", "TidemarkConsole", "TidemarkEmbeddedCloud", "TidemarkIdentity", "TidemarkModel",
                "TidemarkOpenID",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkServerTests",
            dependencies: [
                "COpenSSL", "ReaderFuzz", "TestServers", "TestSupport", "TidemarkConsole", "TidemarkIdentity", "TidemarkCloud",
                "TidemarkCloudEngine",
                "TidemarkEmbeddedCloud", "TidemarkHTTP", "TidemarkMail", "TidemarkPostgres",
                "TidemarkModel", "TidemarkOpenID", "TidemarkServer", "TidemarkSQLite", "TidemarkStore", "TidemarkSync",
                "TidemarkTesting", "TidemarkWire",
                "sharing-probe", "tidemark", "tidemark-server",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: served),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: served),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics", condition: served),
                .product(name: "NIOCore", package: "swift-nio", condition: served),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: served),
                .product(name: "NIOPosix", package: "swift-nio", condition: served),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: served),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: served),
            ],
            swiftSettings: strict),
        .target(
            name: "ReaderFuzz",
            dependencies: [
                "TidemarkCloud", "TidemarkEmbeddedCloud", "TidemarkHTTP", "TidemarkIdentity", "TidemarkModel", "TidemarkPostgres",
                "TidemarkS3", "TidemarkServer", "TidemarkWire", .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/ReaderFuzz/Readers", swiftSettings: strict),
        .executableTarget(
            name: "reader-fuzz", dependencies: ["ReaderFuzz"], path: "Tests/ReaderFuzz/Program", swiftSettings: strict),
        .target(name: "WALReset", dependencies: ["CTideCore", "CSQLite"], path: "Tests/WALReset", cSettings: core),
        .testTarget(
            name: "TidemarkSyncTests",
            dependencies: [
                "TestSupport", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkModel", "TidemarkSQLite",
                "TidemarkContainers", "TidemarkStore",
                "TidemarkSync", "TidemarkTesting", "TidemarkTransfer",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "TestServers", "TestSupport", "TidemarkPostgres", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud",
                "TidemarkModel", "TidemarkSQLite",
                "TidemarkContainers", "TidemarkStore", "TidemarkSync",
                "TidemarkTesting",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(name: "TidemarkModelTests", dependencies: ["TidemarkModel"], swiftSettings: strict),
        .testTarget(
            name: "TidemarkStoreTests",
            dependencies: [
                "CTideCore", "TestSupport", "Tidemark", "TidemarkModel", "TidemarkSQLite", "TidemarkContainers", "TidemarkStore",
                "TidemarkTransfer", "store-probe",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkContainersTests",
            dependencies: [
                "TestSupport", "Tidemark", "TidemarkContainers", "TidemarkModel", "TidemarkSQLite", "TidemarkStore",
                "TidemarkTransfer",
                "store-probe", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkTests",
            dependencies: [
                "TestSupport", "Tidemark", "TidemarkCloud", "TidemarkCloudEngine", "TidemarkEmbeddedCloud", "TidemarkHTTP",
                "TidemarkModel", "TidemarkSQLite", "TidemarkContainers", "TidemarkStore", "TidemarkSync", "TidemarkTesting",
                "TidemarkTransfer",
                "journal-probe",
                "sharing-probe",
                "tidemark",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkTransferTests",
            dependencies: [
                "CArchive", "CTideCore", "CTideManifest", "CTidePictures", "TestSupport", "Tidemark", "TidemarkModel",
                "TidemarkSQLite",
                "TidemarkContainers", "TidemarkStore",
                "TidemarkTransfer", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TidemarkCommandsTests",
            dependencies: [
                "TestSupport", "Tidemark", "TidemarkCommands", "TidemarkModel", "TidemarkSQLite", "TidemarkContainers",
                "TidemarkStore",
                "TidemarkTransfer",
                "journal", "tidemark",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
    ],
    cLanguageStandard: .gnu17,
    cxxLanguageStandard: .cxx17
)

// The programs of Benchmarks, for its smoke test. Here they are built on the modules that the tests have built already. For
// measurements, the package in that folder builds them.
if Context.environment["TIDEMARK_BENCHMARKS"] != nil {
    let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
    for (name, folder, dependencies) in [
        ("store-bench", "Store", [grdb, "Tidemark", "TidemarkSQLite", "TidemarkStore"]),
        ("permissions-bench", "Permissions", ["Tidemark"]),
        ("sync-bench", "Sync", ["Tidemark"]), ("grdb-peer", "Peers/GRDBPeer", [grdb]),
    ] as [(String, String, [Target.Dependency])] {
        package.targets.append(
            .executableTarget(
                name: name, dependencies: dependencies, path: "Benchmarks/\(folder)",
                swiftSettings: [.swiftLanguageMode(.v6)]))
    }
}
