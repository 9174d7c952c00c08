import CTideManifest
import CTidePictures
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Checks the options of an import, and applies them to a store.
extension ImportSession {
    static func check(_ options: ImportOptions) throws(ImportError) {
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

    /// Opens a manifest, and reads its beginning.
    static func manifest(
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

    static func declared(_ options: ImportOptions) -> RecordTypeSchema? {
        options.schema.first { $0.name == options.type }
    }

    static func nameField(options: ImportOptions, existing: RecordTypeSchema?) -> String? {
        options.nameField ?? declared(options)?.nameField ?? existing?.nameField
    }

    /// The fields whose types the reader need not infer. The store's fields come first, so that the columns are in the store's
    /// order.
    static func knownFields(options: ImportOptions, existing: RecordTypeSchema?) -> [ManifestReader.KnownField] {
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
        // Thumbnail fields come after the fields of the pictures. A field that turns out to be a list gets no thumbnails.
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

    /// The names of the fields that get thumbnails.
    private static func thumbnailFields(_ options: ImportOptions, known: [ManifestReader.KnownField]) -> [String] {
        guard options.pictures?.thumbnailPixelSize != nil else { return [] }
        let names = options.assetFields + known.lazy.filter { $0.type == .asset }.map(\.name)
        return names.filter { !isOfThumbnails($0) }.map(thumbnailField)
    }

    private static func thumbnailField(_ name: String) -> String { name + TIDE_PREVIEW_SUFFIX }
    private static func isOfThumbnails(_ name: String) -> Bool { tide_preview_is_field(name, name.utf8.count) }

    /// - Throws: ``ImportError`` `options` if a field for thumbnails has another type.
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

    /// - Throws: ``ImportError`` `options` if a fixed schema lacks a field for thumbnails: each row would be refused.
    static func checkThumbnails(
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

    /// - Throws: ``ImportError`` `options` if the store has a type whose name differs by the case of letters only.
    static func checkSpelling(of type: String, among types: [RecordTypeSchema]) throws(ImportError) {
        if let other = types.first(where: { NameCollision.collide($0.name, type) }) {
            throw ImportError(.options, NameCollision(.recordType, type, other.name).description)
        }
    }

    /// The container's private store; `nil` if it does not exist yet: this import makes it, another process is making it, or a
    /// process was killed while it made it.
    private static func existingStore(in url: URL) throws -> StoreReader? {
        guard !ImportTarget.isNew(url), let container = try? ContainerDirectory(openingAt: url) else { return nil }
        do {
            return try StoreReader(container: container)
        } catch let error where error.code == .notFound {
            return nil
        }
    }

    /// The references that an earlier import has declared, which need not be named again.
    static func knownReferences(of options: ImportOptions, in url: URL) throws -> [(field: String, type: String)] {
        guard options.namesHaveType, let store = try existingStore(in: url) else { return [] }
        let known = try store.referenceTargets(of: options.type)
        let given = Set(options.references.map(\.field)).union(declared(options)?.references.keys.map { $0 } ?? [])
        return known.filter { !given.contains($0.key) }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Whether short names of a type get the type before them. They do not if the store has plain names of the type, and no
    /// others.
    static func namesHaveType(of type: String, in url: URL) throws -> Bool {
        guard let store = try existingStore(in: url) else { return true }
        return try store.namesHaveType(of: type)
    }

    static func checkPhotos(against schema: RecordTypeSchema, options: ImportOptions) throws(ImportError) {
        for field in PhotoFolder.fields + (options.pictures?.thumbnailPixelSize == nil ? [] : [PhotoFolder.thumbnailField]) {
            if let known = schema.field(named: field.name), known.type != field.type {
                throw ImportError(
                    .options,
                    "field '\(field.name)' of \(schema.name) is \(known.type) in the store; photos have \(field.type) there. "
                        + "Give them another type with --type")
            }
        }
    }

    static func assetsRoot(source: ImportSource, options: ImportOptions) -> URL {
        if let root = options.assetsRoot { return root }
        if case .file(let url) = source { return url.deletingLastPathComponent() }
        return URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
    }

    static func workers(store: BlobStore, root: URL, count: Int) throws(ImportError) -> IngestWorkers {
        do {
            return try IngestWorkers(store: store, root: root, count: count)
        } catch {
            throw ImportError(.source, error.message)
        }
    }

    /// The key of an import, made of its source and options. An interrupted import is resumed only by an import with the same
    /// key.
    static func key(source: ImportSource, options: ImportOptions) -> String {
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

    /// The part of the key for pictures. It is empty if pictures are not scaled, so that such imports have the same key as in
    /// earlier versions.
    private static func key(_ pictures: PictureOptions?) -> [String] {
        guard let pictures else { return [] }
        func text(_ size: Int?) -> String { size.map { String($0) } ?? "" }
        let quality = pictures.changesPicture ? pictures.percentage : nil
        return ["pictures", text(pictures.maxPixelSize), text(quality), text(pictures.thumbnailPixelSize)]
            + (pictures.keepsLocation ? ["location"] : [])
    }
}
