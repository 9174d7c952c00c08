import CTideManifest
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Reads JSON Lines, a JSON array or CSV; see `tide_manifest.h`.
actor ManifestReader: BatchReader {
    private nonisolated let executor = StoreExecutor(label: "tidemark.manifest")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated let total: Int?
    private let manifest: Manifest
    private let options: ImportOptions
    private let knownFields: [KnownField]
    private let nameField: String?
    private let assetsRoot: URL
    /// The observations about the first batch.
    private var firstNotes: SourceNotes?

    /// A field whose type is known. Fields that may be lists come last.
    struct KnownField {
        let name: String
        let type: FieldType
        var isBoolean = false
        /// Whether the field becomes a list of the type if its first value is a list.
        var mayBeList = false
        /// The type of the records that the field refers to.
        var target: String?

        var code: tide_type { RecordTypeSchema.Field(name: name, type: type, isBoolean: isBoolean).code }
    }

    /// Opens a manifest.
    ///
    /// - Parameter assetsRoot: The folder to which paths of files are relative.
    init(
        source: ImportSource, options: ImportOptions, nameField: String?, assetsRoot: URL = URL(fileURLWithPath: "."),
        knownFields: [KnownField]
    ) throws(ImportError) {
        self.options = options
        self.knownFields = knownFields
        self.nameField = nameField
        self.assetsRoot = assetsRoot
        let file = try SourceFile(source)
        let size = file.size
        manifest = try Manifest(file: file, options: options, nameField: nameField, knownFields: knownFields)
        total = manifest.isConverted ? nil : size
    }

    func fill(_ batch: RecordBatch) throws -> FilledBatch {
        let isLast = try manifest.read(into: batch)
        if firstNotes == nil { firstNotes = look(at: batch) }
        return FilledBatch(batch: batch, isLast: isLast, position: manifest.position)
    }

    func resume(at position: SourcePosition) throws { try manifest.resume(at: position) }

    func notes() -> SourceNotes {
        var notes = firstNotes ?? SourceNotes()
        notes.absentAssetFields = options.assetFields.filter { name in
            knownFields.firstIndex { $0.name == name }.map { !manifest.hasHadField(at: $0) } ?? false
        }
        notes.absentMappings = options.mappings.indices.filter { !manifest.hasHadMapping(at: $0) }.map {
            options.mappings[$0].from
        }
        notes.localTimeFields = manifest.localTimeFields
        return notes
    }

    /// Finds the columns that could name the rows, and the columns that name files.
    private func look(at batch: RecordBatch) -> SourceNotes {
        var notes = SourceNotes()
        if nameField == nil { notes.namingColumns = [] }
        for column in 0..<tide_batch_column_count(batch.pointer) {
            var length = 0
            let text = tide_batch_column_name(batch.pointer, column, &length)
            let name = String(decoding: UnsafeRawBufferPointer(start: text, count: length), as: UTF8.self)
            let type = tide_batch_column_type(batch.pointer, column)
            if nameField == nil, type == TIDE_TYPE_STRING || type == TIDE_TYPE_INT64,
                tide_batch_column_names_rows(batch.pointer, column)
            {
                notes.namingColumns?.append(name)
            }
            let isNew = !knownFields.contains { $0.name == name }
            if type == TIDE_TYPE_STRING, isNew, namesFiles(column, of: batch) { notes.fileFields.append(name) }
        }
        return notes
    }

    /// Whether the first values of a column all name files below the root of assets.
    private func namesFiles(_ column: UInt32, of batch: RecordBatch) -> Bool {
        var count = 0
        for row in 0..<min(UInt32(batch.rowCount), 100) where count < 3 && tide_batch_row_is_live(batch.pointer, row) {
            let cell = tide_batch_cell(batch.pointer, row, column)
            guard cell.kind == UInt8(TIDE_KIND_TEXT.rawValue), cell.length > 0 else { continue }
            let text = tide_batch_text(batch.pointer, Int(cell.offset))
            let path = String(decoding: UnsafeRawBufferPointer(start: text, count: Int(cell.length)), as: UTF8.self)
            guard !path.hasPrefix("/"), path.utf8.count < 4096, path.contains("."),
                FileIdentity(assetsRoot.appendingPathComponent(path))?.isFile == true
            else { return false }
            count += 1
        }
        return count > 0
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
final class Manifest {
    private let file: SourceFile
    private let pointer: OpaquePointer

    fileprivate init(
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

    /// Reads rows into a batch. Returns `true` when the source is at its end.
    func read(into batch: RecordBatch) throws(ImportError) -> Bool {
        var error = tide_error()
        let status = tide_manifest_read(pointer, batch.pointer, &error)
        guard status == TIDE_OK || status == TIDE_END else { throw Self.failure(error, reading: file.name) }
        return status == TIDE_END
    }

    func hasHadField(at index: Int) -> Bool { tide_manifest_field_occurred(pointer, UInt32(index)) }
    func hasHadMapping(at index: Int) -> Bool { tide_manifest_mapping_occurred(pointer, UInt32(index)) }

    var isConverted: Bool { tide_manifest_is_converted(pointer) }

    /// The fields with times that have no offset.
    var localTimeFields: [String] {
        var names: [String] = []
        while let name = tide_manifest_local_time_field(pointer, UInt32(names.count)) { names.append(String(cString: name)) }
        return names
    }

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

    /// Passes the options to a call of the C core, as memory that is valid during the call.
    static func withOptions(
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
        let fields = knownFields.map {
            tide_known_field(name: lend($0.name), type: $0.code, target: $0.target.map(lend))
        }
        let offsets = options.timeZone.offsets
        return mappings.withUnsafeBufferPointer { mappings in
            fields.withUnsafeBufferPointer { fields in
                offsets.withUnsafeBufferPointer { offsets in
                    let times = tide_time_rules(
                        offsets: offsets.baseAddress, offset_count: UInt32(offsets.count), order: order(of: options))
                    var lent = tide_manifest_options(
                        format: format(of: options), type_name: lend(options.type), name_field: nameField.map(lend),
                        name_is_required: options.nameField != nil, mappings: mappings.baseAddress,
                        mapping_count: UInt32(mappings.count), fields: fields.baseAddress, field_count: UInt32(fields.count),
                        open_field_count: UInt32(knownFields.count { $0.mayBeList }), row_limit: 0,
                        names_have_type: options.namesHaveType && nameField != nil, decimal_comma: options.hasDecimalComma,
                        delimiter: CChar(bitPattern: options.delimiter?.asciiValue ?? 0), nesting: nesting(of: options),
                        times: times, encoding: options.encoding.map(lend))
                    return body(&lent)
                }
            }
        }
    }

    private static func order(of options: ImportOptions) -> tide_date_order {
        switch options.dateOrder {
        case nil: TIDE_DATE_ORDER_NONE
        case .dmy: TIDE_DATE_ORDER_DAY_FIRST
        case .mdy: TIDE_DATE_ORDER_MONTH_FIRST
        }
    }

    private static func nesting(of options: ImportOptions) -> tide_nesting {
        switch options.nestedJSON {
        case .refuse: TIDE_NESTING_REFUSE
        case .flatten: TIDE_NESTING_FLATTEN
        case .json: TIDE_NESTING_JSON
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
