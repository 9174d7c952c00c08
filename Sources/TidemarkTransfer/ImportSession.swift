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
    /// The types that the store had.
    private let typesBefore: [RecordTypeSchema]
    /// The directory of a dry run's scratch store.
    private let scratch: URL?
    private let start = ContinuousClock.now

    /// Bytes of rows in one batch, whatever their number.
    private static let batchBytes = 12 << 20
    /// Rows of a transaction at most where pictures are scaled: an interrupted import does this many again.
    private static let pictureRows = 256

    /// Threads that ingest files: more than a small machine has cores, as each waits for the disk most of its time; and as many as it has
    /// cores to scale pictures, which computes, and takes memory for each.
    private static func workerCount(_ options: ImportOptions) -> Int {
        guard options.pictures != nil else { return 4 }
        let machine = ProcessInfo.processInfo
        return Int(tide_picture_concurrency(UInt64(machine.activeProcessorCount), machine.physicalMemory))
    }

    init(
        source given: ImportSource, container url: URL, options givenOptions: ImportOptions, new: NewContainer? = nil
    ) async throws {
        // Before anything is made: a mistyped path, or a source that can't be used, must not leave an empty container.
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
                // Another process has made the container meanwhile, and the type.
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

                // They are made with the first record, so that an import that comes to nothing leaves none.
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
        // A source without rows is a way to have the types made.
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
            // The write first: when it fails, what was read after it is of no use.
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

    /// Lets go of everything; with `isWhole`, nothing is left to clean up.
    func end(isWhole: Bool) {
        if isWhole { blobs.close() }
        prepared.remove()
        // What can't be removed lies in the folder for temporary files, and is nothing that the import is about.
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

// The options

extension ImportSession {
    private static func check(_ options: ImportOptions) throws(ImportError) {
        guard options.batchSize > 0 else { throw ImportError(.options, "a batch has at least one row") }
        if let fault = options.pictures?.fault { throw ImportError(.options, fault) }
        try Identifier.check(options.type, names: "a record type")
        for field in options.assetFields { try Identifier.check(field, names: "a field") }
        if let delimiter = options.delimiter {
            guard let code = delimiter.asciiValue, code == 9 || code >= 32, !delimiter.isLetter, !delimiter.isNumber,
                delimiter != "\""
            else {
                throw ImportError(.options, "'\(delimiter)' cannot separate cells; a delimiter is one ASCII character, or a tab")
            }
        }
        for reference in options.references {
            try Identifier.check(reference.field, names: "a field")
            try Identifier.check(reference.type, names: "a record type")
        }
        for mapping in options.mappings where mapping.to != options.nameField && mapping.to != "_name" {
            try Identifier.check(mapping.to, names: "a field")
        }
        var seen: Set<String> = []
        for mapping in options.mappings where !seen.insert(mapping.from).inserted {
            throw ImportError(.options, "'\(mapping.from)' is mapped twice")
        }
    }

    /// Opens a manifest, and reads what it begins with.
    private static func manifest(
        _ source: ImportSource, options: ImportOptions, existing: RecordTypeSchema?
    ) throws(ImportError) -> ManifestReader {
        let nameField = nameField(options: options, existing: existing)
        if let nameField, options.assetFields.contains(nameField) {
            throw ImportError(.options, "the field '\(nameField)' holds the record names; it can't be an asset")
        }
        for schema in [existing, declared(options)] {
            try checkAssets(options.assetFields, against: schema)
            try checkReferences(options.references.map(\.field), against: schema)
            try checkThumbnails(options, against: schema)
        }
        let known = knownFields(options: options, existing: existing)
        if let root = options.assetsRoot, known.contains(where: { $0.type.scalar == .asset }) { try checkFolder(root) }
        return try ManifestReader(
            source: source, options: options, nameField: nameField, assetsRoot: assetsRoot(source: source, options: options),
            knownFields: known)
    }

    private static func declared(_ options: ImportOptions) -> RecordTypeSchema? {
        options.schema.first { $0.name == options.type }
    }

    private static func nameField(options: ImportOptions, existing: RecordTypeSchema?) -> String? {
        options.nameField ?? declared(options)?.nameField ?? existing?.nameField
    }

    /// The fields whose types the reader need not infer: those of the store first, so that its columns come in that order.
    private static func knownFields(options: ImportOptions, existing: RecordTypeSchema?) -> [ManifestReader.KnownField] {
        var known = (existing?.fields ?? []).map {
            ManifestReader.KnownField(name: $0.name, type: $0.type, isBoolean: $0.isBoolean)
        }
        for field in declared(options)?.fields ?? [] where !known.contains(where: { $0.name == field.name }) {
            known.append(.init(name: field.name, type: field.type, isBoolean: field.isBoolean))
        }
        for field in options.references where !known.contains(where: { $0.name == field.field }) {
            known.append(.init(name: field.field, type: .reference, mayBeList: true))
        }
        let targets =
            (declared(options)?.references ?? [:]).map { ($0.key, $0.value) } + options.references.map { ($0.field, $0.type) }
        for (name, target) in targets {
            for index in known.indices where known[index].name == name && known[index].type.scalar == .reference {
                known[index].target = target
            }
        }
        for name in options.assetFields where !known.contains(where: { $0.name == name }) {
            known.append(.init(name: name, type: .asset, mayBeList: true))
        }
        // Behind the pictures, as they are seen; one that turns out to be a list gets no thumbnails.
        for name in thumbnailFields(options, known: known) where !known.contains(where: { $0.name == name }) {
            known.append(.init(name: name, type: .asset, mayBeList: true))
        }
        return known
    }

    private static func checkFolder(_ url: URL) throws(ImportError) {
        let folder = opendir(url.path)
        guard let folder else { throw ImportError(.source, "cannot read \(url.path): \(String(cString: strerror(errno)))") }
        closedir(folder)
    }

    private static func checkAssets(_ fields: [String], against schema: RecordTypeSchema?) throws(ImportError) {
        for name in fields {
            if let field = schema?.field(named: name), field.type.scalar != .asset {
                throw ImportError(.options, "field '\(name)' of \(schema!.name) is \(field.type), no asset")
            }
        }
    }

    /// The fields that get thumbnails, by the names of those that have pictures.
    private static func thumbnailFields(_ options: ImportOptions, known: [ManifestReader.KnownField]) -> [String] {
        guard options.pictures?.thumbnailPixelSize != nil else { return [] }
        let names = options.assetFields + known.lazy.filter { $0.type == .asset }.map(\.name)
        return names.filter { !isOfThumbnails($0) }.map(thumbnailField)
    }

    private static func thumbnailField(_ name: String) -> String { name + TIDE_PREVIEW_SUFFIX }
    private static func isOfThumbnails(_ name: String) -> Bool { tide_preview_is_field(name, name.utf8.count) }

    /// - Throws: ``ImportError`` `options` where a field that is to have thumbnails is something else.
    private static func checkThumbnails(_ options: ImportOptions, against schema: RecordTypeSchema?) throws(ImportError) {
        guard let schema else { return }
        let known = schema.fields.map { ManifestReader.KnownField(name: $0.name, type: $0.type) }
        for name in thumbnailFields(options, known: known) {
            if let field = schema.field(named: name), field.type != .asset {
                throw ImportError(
                    .options,
                    "field '\(name)' of \(schema.name) is \(field.type), and thumbnails would go there. Import without thumbnails, or give "
                        + "that field another name first, with 'tidemark schema rename'")
            }
        }
    }

    /// - Throws: ``ImportError`` `options` where a fixed schema lacks a field for thumbnails: each row would be refused.
    private static func checkThumbnails(
        _ options: ImportOptions, isFolder: Bool, fields: [RecordTypeSchema.Field]
    ) throws(ImportError) {
        guard options.pictures?.thumbnailPixelSize != nil else { return }
        let known = fields.map { ManifestReader.KnownField(name: $0.name, type: $0.type) }
        let names = isFolder ? [thumbnailField("image")] : thumbnailFields(options, known: known)
        for name in names where !fields.contains(where: { $0.name == name }) {
            throw ImportError(
                .options, "the type '\(options.type)' has no field '\(name)' for thumbnails; in production the schema is fixed")
        }
    }

    private static func checkReferences(_ fields: [String], against schema: RecordTypeSchema?) throws(ImportError) {
        for name in fields {
            if let field = schema?.field(named: name), field.type.scalar != .reference {
                throw ImportError(.options, "field '\(name)' of \(schema!.name) is \(field.type), no reference")
            }
        }
    }

    /// - Throws: ``ImportError`` `options` where a type has the name in other letters' cases: it would become a second one.
    private static func checkSpelling(of type: String, among types: [RecordTypeSchema]) throws(ImportError) {
        if let other = types.first(where: { NameCollision.collide($0.name, type) }) {
            throw ImportError(.options, NameCollision(.recordType, type, other.name).description)
        }
    }

    /// The container's private store; `nil` where it is to be made yet: by this import, by another process that makes it just now, or because
    /// a process was killed while it did.
    private static func existingStore(in url: URL) throws -> StoreReader? {
        guard !ImportTarget.isNew(url), let container = try? ContainerDirectory(openingAt: url) else { return nil }
        do {
            return try StoreReader(container: container)
        } catch let error where error.code == .notFound {
            return nil
        }
    }

    /// References of an earlier import, which need not be named again.
    private static func knownReferences(of options: ImportOptions, in url: URL) throws -> [(field: String, type: String)] {
        guard options.namesHaveType, let store = try existingStore(in: url) else { return [] }
        let known = try store.referenceTargets(of: options.type)
        let given = Set(options.references.map(\.field)).union(declared(options)?.references.keys.map { $0 } ?? [])
        return known.filter { !given.contains($0.key) }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Whether short names of a type get the type before them: unless the store has plain ones of it, and no others.
    private static func namesHaveType(of type: String, in url: URL) throws -> Bool {
        guard let store = try existingStore(in: url) else { return true }
        return try store.namesHaveType(of: type)
    }

    private static func checkPhotos(against schema: RecordTypeSchema, options: ImportOptions) throws(ImportError) {
        for field in PhotoFolder.fields + (options.pictures?.thumbnailPixelSize == nil ? [] : [PhotoFolder.thumbnailField]) {
            if let known = schema.field(named: field.name), known.type != field.type {
                throw ImportError(
                    .options,
                    "field '\(field.name)' of \(schema.name) is \(known.type) in the store; photos have \(field.type) there. "
                        + "Give them another type with --type")
            }
        }
    }

    private static func assetsRoot(source: ImportSource, options: ImportOptions) -> URL {
        if let root = options.assetsRoot { return root }
        if case .file(let url) = source { return url.deletingLastPathComponent() }
        return URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
    }

    private static func workers(store: BlobStore, root: URL, count: Int) throws(ImportError) -> IngestWorkers {
        do {
            return try IngestWorkers(store: store, root: root, count: count)
        } catch {
            throw ImportError(.source, error.message)
        }
    }

    /// Tells one import from another: what is imported, and how.
    private static func key(source: ImportSource, options: ImportOptions) -> String {
        let place =
            switch source {
            case .file(let url), .folder(let url): url.standardizedFileURL.resolvingSymlinksInPath().path
            case .standardInput: "-"
            }
        let parts =
            [place, options.type, options.format.rawValue, options.nameField ?? ""]
            + options.mappings.map { "\($0.from)=\($0.to)" }.sorted() + ["assets"] + options.assetFields.sorted()
            + [options.encoding ?? "", options.nestedJSON.rawValue, options.delimiter.map { String($0) } ?? ""]
            + [options.timeZone.identifier, options.dateOrder?.rawValue ?? "", options.hasDecimalComma ? "," : "."]
        return (parts + key(options.pictures)).joined(separator: "\u{1f}")
    }

    /// Nothing where pictures are not scaled, so that such an import has the key that it always had.
    private static func key(_ pictures: PictureOptions?) -> [String] {
        guard let pictures else { return [] }
        func text(_ size: Int?) -> String { size.map { String($0) } ?? "" }
        let quality = pictures.changesPicture ? pictures.percentage : nil
        return ["pictures", text(pictures.maxPixelSize), text(quality), text(pictures.thumbnailPixelSize)]
            + (pictures.keepsLocation ? ["location"] : [])
    }
}
