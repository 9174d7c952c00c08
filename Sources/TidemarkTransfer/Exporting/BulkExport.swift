public import Foundation
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// Exports the records of a type as a manifest, and their assets as files.
///
/// Importing an export again changes nothing. Damaged records are left out, and ``Summary/damaged`` names them. The file appears
/// under its name when it is complete.
///
/// ```swift
/// let export = BulkExport(from: container, type: "Destination", format: .jsonl, to: .file(URL(fileURLWithPath: "journal.jsonl")))
/// let summary = try export.run()
/// ```
public struct BulkExport: Sendable {
    /// The form of the manifest.
    public enum Format: String, CaseIterable, Sendable {
        /// `jsonl`: a JSON object in each line. `csv`: a line of names, then a line for each record.
        case jsonl, csv
    }

    /// The place of the manifest.
    public enum Target: Sendable, Hashable {
        /// A file, which appears when it is complete, and replaces an existing file.
        case file(URL)
        /// The standard output of the process.
        case standardOutput
    }

    /// The result of an export.
    public struct Summary: Hashable, Sendable, Encodable {
        /// Records in the manifest.
        public var records = 0
        /// Files of assets that were copied.
        public var assets = 0
        /// Bytes of the manifest.
        public var bytes = 0
        /// The reasons why assets could not be copied: they are missing or damaged. Their records name them by identifier.
        public var problems: [String] = []
        /// The names of damaged records, which were not exported.
        public var damaged: [String] = []
    }

    private let container: ContainerDirectory
    private let scope: StoreScope
    private let type: String
    private let format: Format
    private let target: Target
    private let assets: URL?
    private let namesAssetsForPeople: Bool

    /// Describes an export. Nothing is read before ``run(progress:)``.
    ///
    /// - Parameters:
    ///   - container: The container.
    ///   - scope: The store whose records are exported.
    ///   - type: The name of the record type.
    ///   - format: The form of the manifest.
    ///   - target: The place of the manifest.
    ///   - assets: The folder that gets copies of the assets. If it is `nil`, fields have `asset:` and an identifier, which only
    ///     a store with that asset can import.
    ///   - namesAssetsForPeople: Whether the records' captions, titles or names are the names of the copies, in place of
    ///     identifiers.
    public init(
        from container: ContainerDirectory, scope: StoreScope = .private, type: String, format: Format, to target: Target,
        assets: URL? = nil, namesAssetsForPeople: Bool = false
    ) {
        self.container = container
        self.scope = scope
        self.type = type
        self.format = format
        self.target = target
        self.assets = assets
        self.namesAssetsForPeople = namesAssetsForPeople
    }

    /// Runs the export to its end.
    ///
    /// - Parameter progress: Called from time to time with the summary so far, and the number of all records.
    /// - Throws: ``ImportError`` `options` when the target is inside the container; `output`, `writing` or `store`. Then no file
    ///   was made.
    public func run(progress: ((Summary, Int) -> Void)? = nil) throws -> Summary {
        do {
            try checkTargets()
            let reader = try StoreReader(container: container, scope: scope)
            let schema = try reader.type(named: type)
            let total = try reader.count(type: type)
            let names = namesAssetsForPeople ? AssetNames(schema) : nil
            let folder = try assets.map { try AssetFolder($0, target: target, reader: reader, names: names) }
            let output = try OutputFile(target)
            let summary = try write(
                reader: reader, schema: schema, folder: folder, output: output, progress: { progress?($0, total) })
            // The copies come first, because the manifest names them.
            try folder?.finish()
            try output.finish()
            return summary
        } catch let error as StoreError {
            throw ImportError(error.code == .schema ? .options : .store, error.message, cause: error)
        } catch let error as DecodingError {
            let cause = StoreError(.corrupt, "a list in a record of \(type) is not one: \(error)")
            throw ImportError(.store, cause.message, cause: cause)
        }
    }

    private func checkTargets() throws(ImportError) {
        var targets = [assets].compactMap { $0 }
        if case .file(let url) = target { targets.append(url) }
        for url in targets where FileIdentity.lies(url, within: container.url) {
            throw ImportError(.options, "\(url.path) lies in the container; export to another place")
        }
    }

    private func write(
        reader: StoreReader, schema: RecordTypeSchema, folder: AssetFolder?, output: OutputFile, progress: (Summary) -> Void
    ) throws -> Summary {
        let text = folder.map { folder in RecordText(schema: schema, assetText: folder.path(of:)) } ?? RecordText(schema: schema)
        var summary = Summary()
        var buffer: [UInt8] = []
        if format == .csv { text.appendCSVHeader(to: &buffer) }
        try reader.forEachRecord(RecordQuery(type: type), checksDigests: true) { record in
            guard record.isIntact else { return summary.damaged.append(record.name) }
            folder?.begin(record)
            switch format {
            case .csv: try text.appendCSV(record, to: &buffer)
            case .jsonl:
                try text.appendJSON(record, to: &buffer)
                buffer.append(0x0a)
            }
            summary.records += 1
            guard buffer.count >= 1 << 20 else { return }
            try output.write(buffer)
            summary.bytes += buffer.count
            summary.assets = folder?.count ?? 0
            buffer.removeAll(keepingCapacity: true)
            progress(summary)
        }
        try output.write(buffer)
        summary.bytes += buffer.count
        summary.assets = folder?.count ?? 0
        summary.problems = folder?.problems ?? []
        return summary
    }
}
