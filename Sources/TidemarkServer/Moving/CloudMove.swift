package import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkPostgres
import TidemarkSQLite

/// Copies a cloud from a directory into a database and a bucket, or back, so that devices notice nothing. After an interruption
/// of any kind, running it again continues where it stopped.
package struct CloudMove: Sendable {
    /// A place that has a cloud, or gets one.
    package enum Place: Sendable {
        case directory(URL)
        case database(ServerConfiguration.Database)
    }

    /// The result of a move.
    package struct Report: Sendable {
        package var containers = 0
        /// The number of environments of all containers: a container has one or two.
        package var environments = 0
        package var accounts = 0
        package var records = 0
        package var assets = 0
        /// The digest of both sides, in hexadecimal.
        package var digest = ""
        /// Contents that are damaged or missing in the source.
        package var problems: [String] = []
    }

    /// How far a move is.
    package struct Progress: Sendable {
        /// The present work, such as `records of journal/development`.
        package let what: String
        package let done: Int
        package let total: Int
    }

    private let source, target: Place
    private let progress: @Sendable (Progress) -> Void

    /// Describes a move. ``run()`` does it.
    package init(from source: Place, to target: Place, progress: @escaping @Sendable (Progress) -> Void) {
        (self.source, self.target, self.progress) = (source, target, progress)
    }

    /// Moves everything that was not moved yet, and compares both sides.
    ///
    /// - Throws: ``ServerError``: `options` for two places of one kind, `noData` for a source without a cloud, `occupied` for a target with
    ///   something else, `busy` while others use one of the places, `storage`, `io`.
    package func run() async throws(ServerError) -> Report {
        var opened: [any MoveSide] = []
        let result: Result<Report, any Error>
        do {
            result = .success(try await run(&opened))
        } catch {
            result = .failure(error)
        }
        // After a failure, too: a program that ends while libpq's connections are in use may crash.
        for side in opened.reversed() { await side.close() }
        do {
            return try result.get()
        } catch let error as MoveError {
            throw ServerError(error)
        } catch let error as StoreError where error.code == .busy {
            throw ServerError(.busy, error.message)
        } catch let error as StoreError {
            throw ServerError(.io, error.message)
        } catch {
            throw ServerError(storing: error)
        }
    }

    /// - Parameter opened: Gets the opened places, which the caller closes.
    private func run(_ opened: inout [any MoveSide]) async throws -> Report {
        // An address that can't be read is reported before the source is opened, which may take long.
        if case .database(let place) = self.target { _ = try PostgresAddress(place.address) }
        let source: any MoveSide =
            switch self.source {
            case .directory(let directory): try SQLiteMoveSide(source: directory)
            case .database(let place): try await PostgresMoveSide(place)
            }
        opened.append(source)
        let run = MoveRun(source, progress)
        try await run.checkSource()
        let target: any MoveTarget
        switch self.target {
        case .directory(let place):
            if EmbeddedCloud.exists(at: place) {
                let there = try SQLiteMoveSide(source: place)
                opened.append(there)
                return try await run.compare(with: there)
            }
            target = try SQLiteMoveTarget(target: place)
        case .database(let place): target = try await PostgresMoveSide(place)
        }
        opened.append(target)
        return try await run.move(to: target)
    }
}

extension ServerError {
    fileprivate init(_ error: MoveError) {
        let code: Code =
            switch error.code {
            case .missing: .noData
            case .occupied: .occupied
            case .busy, .changed: .busy
            case .different: .different
            case .io: .io
            }
        self.init(code, error.message)
    }
}

/// A move while it runs.
private struct MoveRun {
    private let source: any MoveSide
    private let progress: @Sendable (CloudMove.Progress) -> Void

    init(_ source: any MoveSide, _ progress: @escaping @Sendable (CloudMove.Progress) -> Void) {
        (self.source, self.progress) = (source, progress)
    }

    /// A table, with the container that it belongs to.
    private struct Part {
        let container: MovedContainer?
        let table: MovedTable

        var key: String { "\(container?.path ?? "") \(table.name)" }
        var what: String { "\(table.name)\(container.map { " of \($0.path)" } ?? "")" }
    }

    /// The tables that belong to no container: accounts, credentials and subscriptions.
    private static let commonParts = ([MovedTable.ofAccounts] + MovedTable.ofCredentials + MovedTable.ofSubscriptions).map {
        Part(container: nil, table: $0)
    }

    private static func parts(_ containers: [MovedContainer]) -> [Part] {
        commonParts
            + containers.flatMap { container in MovedTable.ofContainers.map { Part(container: container, table: $0) } }
    }

    /// Returns a digest that identifies a cloud.
    private static func identity(_ side: any MoveSide, _ containers: [MovedContainer]) async throws -> String {
        var digest = AssetDigest()
        digest.update(Array("move".utf8) + Array(try await side.secrets()["secret"] ?? Data()))
        for container in containers { digest.update(Array(container.path.utf8) + Array(container.key)) }
        return digest.finish().digest
    }

    /// Checks that the source has a cloud that no process uses.
    func checkSource() async throws {
        let accounts = try await source.count(of: .ofAccounts, in: nil)
        let containers = try await source.containers()
        guard !containers.isEmpty || accounts > 0 else {
            throw MoveError(.missing, "\(source.name) holds no cloud; check the place")
        }
        try await source.checkIsUnused()
    }

    // Moving

    func move(to target: any MoveTarget) async throws -> CloudMove.Report {
        try await target.checkIsUnused()
        let containers = try await source.containers()
        let (identity, stamp) = (try await Self.identity(source, containers), try await source.stamp())
        var state: MoveState
        if let known = try await target.state() {
            state = known
            guard state.source == identity else {
                throw MoveError(.occupied, "\(target.name) holds another cloud, or a part of one; name an empty place")
            }
            if state.isDone { return try await compare(with: target) }
            guard state.stamp == stamp, try await hasCommonRows(of: state) else {
                throw MoveError(
                    .changed, "\(source.name) has changed since the move began; empty \(target.name) and begin again")
            }
        } else {
            state = MoveState(source: identity, stamp: stamp)
            try await target.save(state)
        }
        try await target.make(containers)
        try await target.write(secrets: source.secrets())
        for part in Self.parts(containers) where !state.complete.contains(part.key) { try await move(part, to: target, &state) }
        for container in containers where !state.assetsOf.contains(container.path) {
            try await moveAssets(of: container, to: target, &state)
        }
        // The target's rows are read again. The source's rows were summed as they were read.
        let sums = try await self.sums(of: target, containers, "comparing")
        for part in Self.parts(containers) where sums[part.key] != state.sums[part.key] {
            throw MoveError(
                .different,
                "the \(part.what) that have arrived in \(target.name) are not those of \(source.name) (\(sums[part.key]?.count ?? 0) and \(state.sums[part.key]?.count ?? 0) rows); empty the target and begin again, and verify the source if that repeats"
            )
        }
        try await checkContainers(of: target, containers)
        // The slow check comes first, so that nothing can change after the last look.
        let isAsBefore = try await hasCommonRows(of: state)
        try await source.checkIsUnused()
        guard isAsBefore, try await source.stamp() == stamp else {
            throw MoveError(.changed, "\(source.name) has changed meanwhile; empty \(target.name) and begin again")
        }
        try await target.finish(state)
        var report = try await report(sums, containers)
        report.problems = containers.flatMap { state.problems[$0.path] ?? [] }
        return report
    }

    /// Returns whether the source's accounts, credentials and subscriptions are those that were moved. The stamp has only their
    /// number, and would miss a changed password, token or quota.
    private func hasCommonRows(of state: MoveState) async throws -> Bool {
        for part in Self.commonParts where state.complete.contains(part.key) {
            guard try await sum(of: part, in: source, "comparing") == state.sums[part.key] else { return false }
        }
        return true
    }

    private func checkContainers(of target: any MoveSide, _ containers: [MovedContainer]) async throws {
        let arrived = Set(try await target.containers())
        guard arrived == Set(containers), try await target.secrets() == source.secrets() else {
            throw MoveError(
                .different, "the containers or secrets that have arrived in \(target.name) are not those of \(source.name)")
        }
    }

    private func move(_ part: Part, to target: any MoveTarget, _ state: inout MoveState) async throws {
        let total = try await source.count(of: part.table, in: part.container)
        var pace = Pace()
        var sum = state.sums[part.key] ?? RowSum()
        var page = try await source.rows(of: part.table, in: part.container, after: state.place, limit: pace.limit)
        while true {
            for row in page.rows { sum.add(row) }
            state.sums[part.key] = sum
            state.place = page.last
            if page.last == nil { state.complete.insert(part.key) }
            pace.count(page.rows)
            // The next rows are read while these are written.
            let (rows, place, limit, noted) = (page.rows, page.last, pace.limit, state)
            async let written: Void = target.write(rows, to: part.table, in: part.container, noted)
            let next = try await place == nil ? nil : source.rows(of: part.table, in: part.container, after: place, limit: limit)
            try await written
            progress(.init(what: part.what, done: sum.count, total: max(total, sum.count)))
            guard let next else { return }
            page = next
        }
    }

    /// The number of rows to read at once: fewer if they are large.
    private struct Pace {
        private(set) var limit = 500

        mutating func count(_ rows: [MovedRow]) {
            guard !rows.isEmpty else { return }
            let bytes = rows.reduce(0) { $0 + $1.reduce(16) { $0 + ($1.data?.count ?? 8) } }
            limit = max(20, min(5_000, (4 << 20) * rows.count / max(1, bytes)))
        }
    }

    // Assets

    private func moveAssets(of container: MovedContainer, to target: any MoveTarget, _ state: inout MoveState) async throws {
        let total = try await source.count(of: .assets, in: container)
        let (from, to) = (source.assets(of: container), target.assets(of: container))
        var (place, done, problems): (MovedRow?, Int, [String]) = (nil, 0, [])
        repeat {
            let page = try await source.rows(of: .assets, in: container, after: place, limit: 500)
            let assets = page.rows.map { row in
                (
                    owner: String(decoding: row[0].data ?? Data(), as: UTF8.self),
                    asset: CloudAsset(digest: String(decoding: row[1].data ?? Data(), as: UTF8.self), size: row[2].number ?? -1)
                )
            }
            let found = try await withThrowingTaskGroup(of: String?.self) { group in
                var (next, found): (Int, [String]) = (0, [])
                while next < min(Self.assetsAtOnce, assets.count) {
                    let (owner, asset) = assets[next]
                    group.addTask { try await Self.copy(asset, of: owner, from, to) }
                    next += 1
                }
                while let finding = try await group.next() {
                    if let finding { found.append(finding) }
                    done += 1
                    progress(.init(what: "assets of \(container.path)", done: done, total: max(total, done)))
                    guard next < assets.count else { continue }
                    let (owner, asset) = assets[next]
                    group.addTask { try await Self.copy(asset, of: owner, from, to) }
                    next += 1
                }
                return found
            }
            problems += found.sorted().map { "\(container.path): \($0)" }
            place = page.last
        } while place != nil
        state.assetsOf.insert(container.path)
        state.problems[container.path] = problems.isEmpty ? nil : problems
        try await target.save(state)
    }

    private static let assetsAtOnce = 8
    private static let pieceSize: Int64 = 8 << 20

    /// Copies a content that the target lacks. The target compares it with its SHA-256.
    ///
    /// - Returns: What is wrong with the content in the source; `nil` if nothing is.
    private static func copy(
        _ asset: CloudAsset, of owner: String, _ from: any AssetStorage, _ to: any AssetStorage
    ) async throws -> String? {
        guard (try? asset.check()) != nil else { return "the table of assets has an invalid entry '\(asset.digest.prefix(100))'" }
        guard !to.has(asset, owner: owner) else { return nil }
        let label = "the content of the asset \(asset.digest) of '\(owner)'"
        var offset = try await to.received(asset, owner: owner)
        repeat {
            let piece: Data
            do throws(CloudError) {
                piece = try await from.piece(
                    of: asset, from: offset, count: Int(min(pieceSize, asset.size - offset)), owner: owner)
            } catch {
                if error.code == .assetNotAvailable { return "\(label) is missing" }
                guard await from.isDamaged(asset, owner: owner, after: error) else { throw error }
                return "\(label) is damaged"
            }
            guard !piece.isEmpty || asset.size == 0 else { return "\(label) is damaged: it ends too early" }
            // A content that fits in one piece is checked before it is sent.
            if offset == 0, piece.count == asset.size, AssetDigest.asset(of: piece) != asset { return "\(label) is damaged" }
            do throws(CloudError) {
                offset = try await to.add(piece, to: asset, at: offset, owner: owner, by: nil).received
            } catch {
                guard error.code == .assetNotAvailable else { throw error }
                return "\(label) is damaged"
            }
        } while offset < asset.size
        return nil
    }

    // Comparing

    /// Compares two places after a move from one to the other.
    func compare(with target: any MoveSide) async throws -> CloudMove.Report {
        try await target.checkIsUnused()
        let containers = try await source.containers()
        let other = try await target.containers()
        guard try await Self.identity(source, containers) == Self.identity(target, other) else {
            throw MoveError(.occupied, "\(target.name) holds another cloud; name an empty place")
        }
        let (here, there) = (
            try await sums(of: source, containers, "reading"), try await sums(of: target, other, "comparing")
        )
        guard here == there else {
            throw MoveError(
                .occupied,
                "\(target.name) holds this cloud already, and one of both has changed since it was moved; name an empty place to move it again"
            )
        }
        try await checkContainers(of: target, containers)
        return try await report(here, containers)
    }

    private func sums(
        of side: any MoveSide, _ containers: [MovedContainer], _ verb: String
    ) async throws -> [String: RowSum] {
        var sums: [String: RowSum] = [:]
        for part in Self.parts(containers) { sums[part.key] = try await sum(of: part, in: side, verb) }
        return sums
    }

    private func sum(of part: Part, in side: any MoveSide, _ verb: String) async throws -> RowSum {
        var (sum, pace) = (RowSum(), Pace())
        var place: MovedRow?
        let total = try await side.count(of: part.table, in: part.container)
        repeat {
            let page = try await side.rows(of: part.table, in: part.container, after: place, limit: pace.limit)
            for row in page.rows { sum.add(row) }
            pace.count(page.rows)
            progress(.init(what: "\(verb) \(part.what)", done: sum.count, total: max(total, sum.count)))
            place = page.last
        } while place != nil
        return sum
    }

    private func report(_ sums: [String: RowSum], _ containers: [MovedContainer]) async throws -> CloudMove.Report {
        var report = CloudMove.Report()
        (report.containers, report.environments) = (Set(containers.map { $0.name }).count, containers.count)
        report.accounts = sums[" accounts"]?.count ?? 0
        var digest = AssetDigest()
        for (key, sum) in sums.sorted(by: { $0.key < $1.key }) {
            digest.update(Array("\(key) \(sum.text)\n".utf8))
            if key.hasSuffix(" records") { report.records += sum.count }
            if key.hasSuffix(" assets") { report.assets += sum.count }
        }
        var rest = RowSum()
        for container in containers { rest.add(container.row) }
        for (name, content) in try await source.secrets() { rest.add([.bytes(Data(name.utf8)), .bytes(content)]) }
        digest.update(Array(rest.text.utf8))
        report.digest = digest.finish().digest
        return report
    }
}
