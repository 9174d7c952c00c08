import TidemarkCloud
package import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkPostgres

extension OpenedDatabase {
    /// Examines everything once, as ``CloudVerification`` does for a directory. Others may use the cloud meanwhile.
    ///
    /// - Parameter progress: As for a directory.
    /// - Throws: What `progress` throws, or `CloudError`.
    package func verify(
        _ progress: (CloudVerification.Progress) throws -> Void
    ) async throws -> CloudVerification.Report {
        var report = CloudVerification.Report()
        let containers = try await backend.containers()
        report.containers = Set(containers.map { $0.name }).count
        for (name, environment) in containers {
            let place = "\(name) (\(environment.rawValue))"
            report.environments += 1
            try progress(.init(place: place, records: report.records, assets: report.assets))
            let (examination, records) = try await backend.examine(name, environment) { _ in }
            report.records += records
            report.problems += examination.findings.map { .init($0, place: place) }
            for (owner, asset) in examination.assets {
                report.assets += 1
                try progress(.init(place: place, records: report.records, assets: report.assets))
                let (bytes, finding) = try await backend.examine(asset, of: owner, in: name, environment)
                report.bytes += bytes
                if let finding { report.problems.append(.init(finding, place: place)) }
            }
        }
        return report
    }
}
