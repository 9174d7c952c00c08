import CTideManifest
import CTidePictures
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// One run of an import: its stages, and the batches between them.
actor ImportSession {
    private let options: ImportOptions
    private let environment: StoreEnvironment
    private let nameField: String?
    private let store: RecordStore
    private let blobs: BlobStore
    private let reader: any BatchReader
    private let ingest: BatchIngest
    private let rejects: RejectsLog
    private let sourceKey: String
    private let isFolder: Bool
    private let prepared: PreparedSource
    /// The types that the store had before the import.
    private let typesBefore: [RecordTypeSchema]
    /// The directory of a dry run's scratch store.
    private let scratch: URL?
    private let start = ContinuousClock.now

    /// The most bytes of rows in a batch.
    private static let batchBytes = 12 << 20
    /// The most rows of a transaction when pictures are scaled. An interrupted import has to scale at most so many again.
    private static let pictureRows = 256

    /// The number of threads that ingest files. Without scaling it is four, because a thread waits for the disk most of the time.
    /// With scaling it follows from the numbers of cores and the memory, because each thread computes and needs memory for a
    /// picture.
    private static func workerCount(_ options: ImportOptions) -> Int {
        guard options.pictures != nil else { return 4 }
        let machine = ProcessInfo.processInfo
        return Int(tide_picture_concurrency(UInt64(machine.activeProcessorCount), machine.physicalMemory))
    }

    init(
        source given: ImportSource, container url: URL, options givenOptions: ImportOptions, new: NewContainer? = nil
    ) async throws {
        // The source is checked before anything is made: a mistyped path must not leave an empty container.
        let prepared = try PreparedSource(given, format: givenOptions.format)
        self.prepared = prepared
        do {
            var options = givenOptions
            options.format = prepared.format
            isFolder = options.format == .photos
            if isFolder, let type = options.photoType { options.type = type }
            if PreparedSource.hasTabs(prepared.source), options.delimiter == nil { options.delimiter = "\t" }
            let source = prepared.source
            try Self.check(options)
            if let rejects = options.rejects { try RejectsFile.check(rejects, source: given, container: url) }
            options.namesHaveType = try options.namesHaveType && Self.namesHaveType(of: options.type, in: url)
            if !isFolder { options.references += try Self.knownReferences(of: options, in: url) }
            var early =
                !isFolder && ImportTarget.isNew(url) ? try Self.manifest(source, options: options, existing: nil) : nil
            let rejectsFile = try options.rejects.map { url throws(ImportError) in try RejectsFile(at: url) }

            let setting = try await ImportTarget.open(url, options: options, new: new)
            do {
                typesBefore = try await setting.store.types()
                try Self.checkSpelling(of: options.type, among: typesBefore)
                let existing = typesBefore.first { $0.name == options.type }
                // Another process has made the container and the type meanwhile.
                if existing != nil, case .file = given { early = nil }
                if early != nil, existing != nil {
                    let cause = StoreError(.busy, "another process has made \(url.path) meanwhile; import again")
                    throw ImportError(.store, cause.message, cause: cause)
                }
                nameField = Self.nameField(options: options, existing: existing)
                environment = setting.environment
                store = setting.store
                blobs = setting.blobs
                scratch = setting.scratch
                self.options = options

                // This only checks. The types are made with the first record, so that an import without records leaves none.
                try await store.declare(options.schema, environment: environment, isDryRun: true)
                if isFolder, let existing { try Self.checkPhotos(against: existing, options: options) }

                if let fields = options.pictures.flatMap({ _ in existing?.fields ?? [] }), environment == .production {
                    try Self.checkThumbnails(options, isFolder: isFolder, fields: fields + (Self.declared(options)?.fields ?? []))
                }
                sourceKey = Self.key(source: given, options: options)
                let pictures = options.pictures.map { PictureConversion($0) }
                if isFolder, case .folder(let folder) = source {
                    let workers = try IngestWorkers(store: blobs, root: folder, count: Self.workerCount(options))
                    pictures?.attach(to: workers)
                    reader = try PhotoFolder(
                        root: folder, file: prepared.photo, type: options.type, workers: workers, pictures: pictures)
                    ingest = BatchIngest(blobs: blobs, workers: nil, digestSeed: store.identity.digestSeed)
                } else {
                    reader = try early ?? Self.manifest(source, options: options, existing: existing)
                    let root = Self.assetsRoot(source: source, options: options)
                    let takesAssets = Self.knownFields(options: options, existing: existing).contains { $0.type.scalar == .asset }
                    let workers =
                        takesAssets ? try Self.workers(store: blobs, root: root, count: Self.workerCount(options)) : nil
                    if let workers { pictures?.attach(to: workers) }
                    ingest = BatchIngest(
                        blobs: blobs, workers: workers, digestSeed: store.identity.digestSeed, pictures: pictures)
                }
                let position =
                    options.resumes && !options.isDryRun ? try await store.importPosition(source: sourceKey) : nil
                if let position {
                    try await reader.resume(
                        at: SourcePosition(
                            offset: position.offset, line: position.line, digest: position.digest, state: position.state))
                }
                rejects = try RejectsLog(
                    file: rejectsFile, source: sourceKey, resuming: position, scalesPictures: options.pictures != nil)
            } catch {
                setting.abandon()
                throw error
            }
        } catch {
            prepared.remove()
            throw error
        }
    }

    /// Runs the import to its end.
    func run(report: @Sendable (ImportProgress) -> Void) async throws -> ImportSummary {
        try await runStages(report: report)
        let state = rejects.state
        // An import of a source without rows makes the types, too.
        if state.rejected == 0 || state.rejected < state.read {
            try await store.declare(options.schema, environment: environment)
        }
        try await store.endImport(type: options.type, source: options.isDryRun ? nil : sourceKey)
        var summary = summary()
        let notes = await reader.notes()
        (summary.localTimeFields, summary.passedOver) = (notes.localTimeFields, notes.passedOver)
        (summary.namingColumns, summary.fileFields) = (notes.namingColumns, notes.fileFields)
        if summary.resumedAfter == nil, summary.read > 0 {
            (summary.absentAssetFields, summary.absentMappings) = (notes.absentAssetFields, notes.absentMappings)
        }
        let concerned = Set([options.type] + options.schema.map(\.name))
        for type in try await store.types() where concerned.contains(type.name) {
            guard let before = typesBefore.first(where: { $0.name == type.name }) else {
                summary.newTypes.append(type)
                continue
            }
            var added = type
            added.fields.removeAll { before.field(named: $0.name) != nil }
            if !added.fields.isEmpty { summary.newFields.append(added) }
        }
        return summary
    }

    /// Runs the stages: while one batch is written, the next is completed and the one after it is read.
    func runStages(report: @Sendable (ImportProgress) -> Void) async throws {
        let rowLimit = options.pictures == nil ? options.batchSize : min(options.batchSize, Self.pictureRows)
        var free = try (0..<3).map { _ in try RecordBatch(rowLimit: rowLimit, byteLimit: Self.batchBytes) }
        var filled: FilledBatch?
        var completed: FilledBatch?
        var isAtEnd = false
        while !isAtEnd || filled != nil || completed != nil {
            try Task.checkCancellation()
            let next = isAtEnd ? nil : free.removeLast()
            let (toComplete, toWrite) = (filled, completed)
            async let reading = read(next)
            async let completing = complete(toComplete)
            async let writing: Void = write(toWrite)
            let written = toWrite?.batch
            // The write comes first: when it fails, the batches after it have no use.
            try await writing
            (completed, filled) = (try await completing, try await reading)
            if let written {
                written.reset()
                free.append(written)
                report(await progress())
            }
            isAtEnd = isAtEnd || filled?.isLast == true
        }
    }

    /// Ends the session and removes its temporary files.
    ///
    /// - Parameter isWhole: Whether no files of refused rows are left, so that the container needs no cleaning.
    func end(isWhole: Bool) {
        if isWhole { blobs.close() }
        prepared.remove()
        // A file that can't be removed stays in the system's folder for temporary files.
        if let scratch { try? FileManager.default.removeItem(at: scratch) }
    }

    private func read(_ batch: RecordBatch?) async throws -> FilledBatch? {
        guard let batch else { return nil }
        let filled = try await reader.fill(batch)
        try filled.batch.composeNames()
        return filled
    }

    private func complete(_ filled: FilledBatch?) async throws -> FilledBatch? {
        guard let filled else { return nil }
        return try await ingest.complete(filled)
    }

    private func write(_ completed: FilledBatch?) async throws {
        guard let completed else { return }
        let rejects = rejects
        do {
            _ = try await store.write(
                completed.batch,
                BatchWrite(
                    type: options.type, nameField: nameField, schemas: options.schema, environment: environment,
                    author: TransactionAuthor(options.author, origin: options.origin),
                    moreToCome: !completed.isLast, blobs: completed.blobs
                ) { counts in try rejects.note(completed, counts: counts) })
        } catch {
            throw rejects.failure ?? error
        }
    }

    private func summary() -> ImportSummary {
        let state = rejects.state
        return ImportSummary(
            read: state.read, changes: state.counts, rejected: state.rejected, assets: state.assets,
            pictures: options.pictures.map { _ in state.pictures ?? PictureCounts() }, isDryRun: options.isDryRun,
            duration: ContinuousClock.now - start, resumedAfter: rejects.resumedAfter,
            rejectedElsewhere: rejects.rejectedElsewhere, firstRejections: rejects.shown)
    }

    private func progress() async -> ImportProgress {
        ImportProgress(summary: summary(), done: Int(rejects.state.offset), total: await reader.total, isFolder: isFolder)
    }
}
