import CTideManifest
import Foundation
import TidemarkModel
import TidemarkStore

/// Reads JSON Lines, a JSON array or CSV; see `tide_manifest.h`.
actor ManifestReader: BatchReader {
    private nonisolated let executor = StoreExecutor(label: "tidemark.manifest")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated let total: Int?
    private let manifest: Manifest
    private let options: ImportOptions
    private let knownFields: [KnownField]

    /// A field whose type is not to be inferred. Those that may be lists come last.
    struct KnownField {
        let name: String
        let type: FieldType
        var isBoolean = false
        /// It is a list of that type where its first value is a list.
        var mayBeList = false

        var code: tide_type { RecordTypeSchema.Field(name: name, type: type, isBoolean: isBoolean).code }
    }

    init(source: ImportSource, options: ImportOptions, nameField: String?, knownFields: [KnownField]) throws(ImportError) {
        self.options = options
        self.knownFields = knownFields
        let file = try SourceFile(source)
        total = file.size
        manifest = try Manifest(file: file, options: options, nameField: nameField, knownFields: knownFields)
    }

    func fill(_ batch: RecordBatch) throws -> FilledBatch {
        let isLast = try manifest.read(into: batch)
        return FilledBatch(batch: batch, isLast: isLast, position: manifest.position)
    }

    func resume(at position: SourcePosition) throws { try manifest.resume(at: position) }

    func absent() -> AbsentNames {
        AbsentNames(
            assetFields: options.assetFields.filter { name in
                knownFields.firstIndex { $0.name == name }.map { !manifest.hasHadField(at: $0) } ?? false
            },
            mappings: options.mappings.indices.filter { !manifest.hasHadMapping(at: $0) }.map { options.mappings[$0].from })
    }
}

/// An open source and its size.
private struct SourceFile: ~Copyable {
    let descriptor: Int32
    let name: String
    let size: Int?

    init(_ source: ImportSource) throws(ImportError) {
        guard case .file(let url) = source else {
            descriptor = dup(STDIN_FILENO)
            name = "standard input"
            size = nil
            return
        }
        name = url.path
        descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw ImportError(.source, "cannot read \(url.path): \(String(cString: strerror(errno)))")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            close(descriptor)
            throw ImportError(.source, "cannot read \(url.path) as a manifest: it is a folder; for photos use --format photos")
        }
        size = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
    }

    deinit { close(descriptor) }
}

/// Owns the core's reader and the file that it reads.
private final class Manifest {
    private let file: SourceFile
    private let pointer: OpaquePointer

    init(
        file: consuming SourceFile, options: ImportOptions, nameField: String?, knownFields: [ManifestReader.KnownField]
    ) throws(ImportError) {
        var created: OpaquePointer?
        var error = tide_error()
        let status = Self.withOptions(options, nameField: nameField, knownFields: knownFields) {
            tide_manifest_create(file.descriptor, &$0, &created, &error)
        }
        guard status == TIDE_OK, let created else { throw Self.failure(error, reading: file.name) }
        pointer = created
        self.file = file
    }

    deinit { tide_manifest_destroy(pointer) }

    /// True when the source is at its end.
    func read(into batch: RecordBatch) throws(ImportError) -> Bool {
        var error = tide_error()
        let status = tide_manifest_read(pointer, batch.pointer, &error)
        guard status == TIDE_OK || status == TIDE_END else { throw Self.failure(error, reading: file.name) }
        return status == TIDE_END
    }

    func hasHadField(at index: Int) -> Bool { tide_manifest_field_occurred(pointer, UInt32(index)) }
    func hasHadMapping(at index: Int) -> Bool { tide_manifest_mapping_occurred(pointer, UInt32(index)) }

    var position: SourcePosition {
        let position = tide_manifest_position(pointer)
        return SourcePosition(
            offset: position.offset, line: position.line, digest: withUnsafeBytes(of: position.digest) { Array($0) },
            state: position.state)
    }

    func resume(at position: SourcePosition) throws(ImportError) {
        var start = tide_position()
        start.offset = position.offset
        start.line = position.line
        start.state = position.state
        withUnsafeMutableBytes(of: &start.digest) { $0.copyBytes(from: position.digest.prefix($0.count)) }
        var error = tide_error()
        guard tide_manifest_resume(pointer, &start, &error) == TIDE_OK else { throw Self.failure(error, reading: file.name) }
    }

    private static func failure(_ error: tide_error, reading name: String) -> ImportError {
        error.status == TIDE_REJECTED
            ? ImportError(.manifest, "\(name): \(error.text)") : ImportError(.source, "cannot read \(name): \(error.text)")
    }

    /// Lends the core the options for the length of a call.
    private static func withOptions(
        _ options: ImportOptions, nameField: String?, knownFields: [ManifestReader.KnownField],
        _ body: (inout tide_manifest_options) -> tide_status
    ) -> tide_status {
        var strings: [UnsafeMutablePointer<CChar>] = []
        defer { for string in strings { free(string) } }
        func lend(_ text: String) -> UnsafePointer<CChar> {
            strings.append(strdup(text))
            return UnsafePointer(strings[strings.count - 1])
        }
        let mappings = options.mappings.map { tide_mapping(from: lend($0.from), to: lend($0.to)) }
        let fields = knownFields.map { tide_known_field(name: lend($0.name), type: $0.code) }
        return mappings.withUnsafeBufferPointer { mappings in
            fields.withUnsafeBufferPointer { fields in
                var lent = tide_manifest_options(
                    format: format(of: options), type_name: lend(options.type), name_field: nameField.map(lend),
                    name_is_required: options.nameField != nil, mappings: mappings.baseAddress,
                    mapping_count: UInt32(mappings.count), fields: fields.baseAddress, field_count: UInt32(fields.count),
                    open_field_count: UInt32(knownFields.count { $0.mayBeList }), row_limit: 0)
                return body(&lent)
            }
        }
    }

    private static func format(of options: ImportOptions) -> tide_format {
        switch options.format {
        case .auto, .photos: TIDE_FORMAT_AUTO
        case .jsonl: TIDE_FORMAT_JSON_LINES
        case .json: TIDE_FORMAT_JSON_ARRAY
        case .csv: TIDE_FORMAT_CSV
        }
    }
}
