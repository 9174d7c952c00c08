"""The rules whose code is mutated, the suites that are likely to catch the mutants, and mutants that were thought of by hand.

A rule has files (globs below the project) and a filter for the suites that are run first, or None. All suites follow. Before them, a mutant in C is
tested by the tests of the core, which a command builds and runs."""

CORE = ["Tests/CoreFuzz/run"]

RULES = {
    "policy": {
        "files": ["Sources/TidemarkModel/Sharing/SharePolicy.swift", "Sources/TidemarkModel/Sharing/ShareCoverage.swift",
                  "Sources/TidemarkCloudEngine/Sharing/*.swift"],
        "first": "SharePolicyTests|SharingMatrixTests|ShareTests|SharingTests|Hierarchy|ShareCoverageTests|PublicMatrixTests|EmbeddedCloudTests",
    },
    "merge": {
        "files": ["Sources/TidemarkModel/Merging/*.swift", "Sources/TidemarkSync/Resolution/*.swift",
                  "Sources/TidemarkStore/Syncing/Importing/*.swift"],
        "first": "MergeTests|ConflictTests|TidemarkSyncTests",
    },
    "outbox": {
        "files": ["Sources/TidemarkStore/Syncing/Outbox.swift", "Sources/TidemarkStore/Syncing/Export*.swift",
                  "Sources/TidemarkStore/Syncing/PendingRow.swift", "Sources/TidemarkStore/Syncing/RecordStore+Exporting.swift",
                  "Sources/TidemarkStore/History/RecordStore+Purging.swift", "Sources/TidemarkSync/Exporting/*.swift"],
        "first": "TidemarkSyncTests|PurgeTests|OutboxTests|HistoryTests",
    },
    "tags": {
        "files": ["Sources/TidemarkCloudEngine/Records/ChangeTagCipher.swift", "Sources/TidemarkCloudEngine/Records/ModifyBatch*.swift",
                  "Sources/TidemarkCloudEngine/Engine/CloudEngine+Modify.swift", "Sources/TidemarkCloudEngine/Engine/CloudEngine+Changes.swift",
                  "Sources/TidemarkCloudEngine/Records/IdempotencyRecord.swift"],
        "first": "TidemarkCloudEngineTests|EmbeddedCloudTests|TidemarkTestingTests",
    },
    "sessions": {
        "files": ["Sources/TidemarkIdentity/Sessions/*.swift", "Sources/TidemarkIdentity/Credentials/*.swift",
                  "Sources/TidemarkIdentity/Passwords/*.swift", "Sources/TidemarkIdentity/Keys/*.swift"],
        "first": "TidemarkIdentityTests",
    },
    "limits": {
        "files": ["Sources/TidemarkCloud/CloudLimits.swift", "Sources/TidemarkCloudEngine/Schema/SchemaLimits.swift",
                  "Sources/TidemarkCloudEngine/Queries/QueryBudget.swift", "Sources/TidemarkModel/Backoff.swift", "Sources/TidemarkSync/SyncMachine.swift",
                  "CSupport/CTideManifest/tide_archive_limits.h"],
        "first": "LimitTests|QuotaTests|BackoffTests|SyncMachineTests|QueryTests",
    },
    "relations": {
        "files": ["Sources/TidemarkStore/Relationships/*.swift", "Sources/TidemarkModel/RelationshipSchema.swift"],
        "first": "Relationship|TidemarkTests",
    },
    "contents": {
        "files": ["Sources/TidemarkSync/Assets/AssetTransfer.swift", "Sources/TidemarkStore/Assets/AssetCleaning.swift",
                  "Sources/TidemarkStore/Assets/IngestRecovery.swift", "Sources/TidemarkEmbeddedCloud/Assets/AssetDirectory.swift"],
        "first": "Asset|Eviction|TidemarkSyncTests",
    },
    # The C core, which has its own tests.
    "core": {
        "files": ["CSupport/CTideCore/tide_image*.c", "CSupport/CTideCore/tide_blob_read.c", "CSupport/CTideCore/tide_intake.c", "CSupport/CTideCore/tide_places.c",
                  "CSupport/CTidePictures/*.c"],
        "first": None,
    },
    # Faults that only a loss of power shows: a call that makes something durable is left out.
    "durability": {
        "files": ["Sources/TidemarkSQLite/Database/*.swift", "Sources/TidemarkSQLite/Files/*.swift", "Sources/TidemarkTransfer/Exporting/*.swift",
                  "Sources/TidemarkStore/Assets/*.swift", "Sources/TidemarkStore/Writing/StoreConnection.swift",
                  "Sources/TidemarkContainers/*/*.swift", "Sources/TidemarkEmbeddedCloud/Assets/*.swift", "Sources/TidemarkEmbeddedCloud/Backup/*.swift",
                  "CSupport/CTideCore/tide_blob*.c", "CSupport/CTideCore/tide_copy.c", "CSupport/CTideCore/tide_connection.c"],
        "first": "PowerCutTests",
        "operators": ["sync", "synchronous"],
    },
}

# Surviving mutants that cause no observable difference, by their ids, with the reason.
ANSWERS = {
    "dbc0415f01": "only a decompressor has the warning that the function is asked about",
    "09481c8eab": "where as many fields have a value on both sides as the store has, the search for fields that only the store has finds none",
    "881737836f": "a single change in all of history brings nothing to which a delete rule or an owner applies, and the next change has both looked at",
    "be635bd283": "SELECT EXISTS always has a row, so the value for none is never taken",
    "6ea63657fa": "SELECT EXISTS always has a row, so the value for none is never taken",
    "27266a4bf8": "an owner's first change is that of a zone, which no feed of records has: behind it comes the same as behind none",
    "83f33b82e2": "a participant's access begins with a number that the record of the share gets, and no deletion has",
    "58a68170d7": "the number is the capacity that is reserved, and changes no byte",
    "b328b6000f": "each item has two bytes at the least, so an answer with as many items as bytes is damaged either way",
    "e31c7c7d97": "both ways of a sorted query find the same records, and a cloud sets its own number, by QueryLimits",
    "8cad2f925a": "each failure sets the mark, and before the first there is no wait that could be made shorter",
    "f014b724ee": "five bits that wait become the same digit with the next byte, or behind the last one",
    "db6f7ebbfe": "the first commit of a process syncs the folder of the log, too, and no command commits before it sets records aside; a program may",
    "867602bc4f": "each caller writes another file of the folder durably afterwards, which syncs the folder again; the copy does not rely on it",
    "8c9e15d78b": "only the decision about a deletion asks whether the record is a root, and both demands of one say so",
    "8db220657b": "only the decision about a deletion asks whether the record is a root, and none is made without saying so",
    "589d731257": "only decisions about updates and deletions in the public database ask who made the record, and the demand of one there says so",
    "216c7adb5e": "only decisions about updates and deletions in the public database ask who made the record, and none is made without saying so",
    "c33a2bd9f1": "the target is used without saying whether it is a root for a decision about reading alone, which does not ask",
    "f5de10d507": "SELECT EXISTS always has a row, so the value for none is never taken",
    "0d48dbb9d2": "SELECT EXISTS always has a row, so the value for none is never taken",
    "30b673141c": "EXISTS asks whether there is a row, and not what is in it",
    "34ba618d75": "EXISTS asks whether there is a row, and not what is in it",
    "92d2c49084": "EXISTS asks whether there is a row, and not what is in it",
    "83c80012e3": "SELECT EXISTS always has a row, so the value for none is never taken",
    "8f09e30319": "a dictionary has no two equal keys",
    "8c321a1d68": "libexif, too, reads nothing of a block whose first directory lies outside of it, and what is hidden is hidden in a copy",
    "9cb2740031": "an identifier of a preview is empty and all zeros, or has 34 characters at the least",
    "bd18e53978": "neither Linux, which has syncfs, nor macOS, which has F_FULLFSYNC, compiles the line",
}

# Faults that no test noticed when they were first planted by hand: (name, rule, file, before, after).
PLANTED = [
    ("synchronous NORMAL", "durability", "Sources/TidemarkStore/Writing/StoreConnection.swift",
     'try db.execute(sql: "PRAGMA synchronous = FULL")', 'try db.execute(sql: "PRAGMA synchronous = NORMAL")'),
    ("the contents' syncfs left out", "durability", "CSupport/CTideCore/tide_blob.c",
     "if (syncfs(store->assets) == 0) return TIDE_OK;", "if (store->assets >= 0) return TIDE_OK;"),
    ("an export's fsync left out", "durability", "Sources/TidemarkTransfer/Exporting/OutputFile.swift",
     "guard DurableFile.flush(handle.fileDescriptor), rename(", "guard rename("),
    ("a purge that forgets what waits to be sent", "outbox", "Sources/TidemarkStore/History/RecordStore+Purging.swift",
     "try Outbox(db).ingestHistory()", "_ = db"),
    ("the SHA-256 of a downloaded content unchecked", "contents", "Sources/TidemarkSync/Assets/AssetTransfer.swift",
     "if try Self.digest(of: file) == asset { return file }", "if try Self.digest(of: file).size == asset.size { return file }"),
    ("answers to repeated requests forgotten after seconds", "tags", "Sources/TidemarkCloudEngine/Engine/CloudEngine.swift",
     "static let answerAge: Int64 = 7 * 86_400 * 1_000_000", "static let answerAge: Int64 = 7 * 1_000_000"),
    ("deferred records never tried again", "merge", "Sources/TidemarkSync/SyncEngine+Steps.swift",
     "for zoneSync in try await zoneSyncs.all() { _ = try await zoneSync.resolver.applyDeferred(limits: limits) }",
     "for _ in try await zoneSyncs.all() {}"),
]
