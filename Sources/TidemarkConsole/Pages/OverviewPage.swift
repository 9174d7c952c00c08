import Foundation
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// The console's first page: the contents of the cloud, and its faults.
struct OverviewPage {
    let context: Context
    private let figures: (any ServerFigures)?

    init(_ context: Context, _ figures: (any ServerFigures)?) { (self.context, self.figures) = (context, figures) }

    func reply() async throws(AdministrationError) -> ConsoleReply {
        let usage = try await context.administration.usage()
        var notices: HTML = .none
        if context.containers.isEmpty {
            notices += Layout.notice(
                .info, "No container is served, or none is yours.",
                "<p>‘tidemark admin container add’ has the server serve one.</p>")
        }
        if let container = context.container {
            notices += try await refused(in: container)
            notices += try await self.notices(container, usage)
        }
        let sums = (
            usage.reduce(0) { $0 + $1.totals.records }, usage.reduce(0) { $0 + $1.totals.assets },
            usage.reduce(0) { $0 + $1.bytes }
        )
        return Layout.page(
            context, .overview, title: "Overview",
            """
            \(notices)
            <dl class="tiles">
            <div><dt>Containers</dt><dd>\(context.containers.count)</dd></div>
            <div><dt>Records</dt><dd>\(Layout.count(sums.0))</dd></div>
            <div><dt>Assets</dt><dd>\(Layout.count(sums.1))</dd></div>
            <div><dt>Stored</dt><dd>\(Layout.bytes(sums.2))</dd></div>
            </dl>
            <h2>Containers</h2>
            \(table(usage))
            \(plots)
            """)
    }

    /// The requests, errors and latencies of this server. They are for operators, because they cover all containers.
    private var plots: HTML {
        guard let figures, context.administration.isOperator else { return .none }
        let span = context.value("span").flatMap(FigureSpan.init(rawValue:)) ?? .hour
        let samples = figures.history(span)
        let requests = samples.reduce(0) { $0 + $1.requests }
        let (refused, errors) = (samples.reduce(0) { $0 + $1.refused }, samples.reduce(0) { $0 + $1.errors })
        let failed = context.address("activity", query: [("show", "requests"), ("result", "failed"), ("all", "1")])
        let slowest = samples.reduce(0) { max($0, $1.slow) }
        return """
            <h2>Requests to this server</h2>
            <p class="spans">\(FigureSpan.allCases.html { item in
                """
                <a href="\(context.address("", query: [("span", item.rawValue)]))"\(HTML.when(item == span, " aria-current=\"true\""))>Last \(item.rawValue)</a>\u{20}
                """
            })</p>
            <div class="plots">
            \(Plot.bars(
                "Requests and errors",
                "\(Layout.count(requests)) \(requests == 1 ? "request" : "requests") in the last \(span.rawValue), "
                    + Self.failed(refused, errors),
                samples.map { (Double($0.requests), Double($0.refused + $0.errors)) }))
            \(Plot.bars(
                "Time that requests took", requests == 0 ? "Nothing was asked for" : "95 of 100 took \(Int(slowest)) ms at the most",
                samples.map { ($0.slow, 0) }))
            </div>
            <p class="hint">Since the server has started, without the console’s own requests. <a href="\(failed)">The last that failed</a></p>
            """
    }

    /// The number of failed requests, counted as in the list of requests.
    private static func failed(_ refused: Int, _ errors: Int) -> String {
        guard refused + errors > 0 else { return "none of them failed" }
        let (all, parts) = (Layout.count(refused + errors), (Layout.count(refused), Layout.count(errors)))
        return "\(all) of them failed: \(parts.0) refused (4xx), \(parts.1) in the server (5xx)"
    }

    /// The refused requests in each environment of a container, the chosen environment first.
    private func refused(in container: String) async throws(AdministrationError) -> HTML {
        var notices: HTML = .none
        for environment in StoreEnvironment.allCases.sorted(by: { first, _ in first == context.environment }) {
            notices += try await refused(in: container, environment)
        }
        return notices
    }

    /// The refused requests in the last hour or, if there are none, in the last day.
    private func refused(
        in container: String, _ environment: StoreEnvironment
    ) async throws(AdministrationError) -> HTML {
        let (hour, day): (Int64, Int64) = (3_600_000_000, 86_400_000_000)
        let found = try await context.administration.refusedDevices(in: container, environment, within: [hour, day])
        guard !found.isEmpty else { return .none }
        let span = found.span == hour ? "hour" : "day"
        let link = Address(
            ["activity"], query: [("c", container), ("e", environment.rawValue), ("show", "failures")])
        let why: HTML =
            found.hasVisibleReasons
            ? "<a href=\"\(link)\">See why<span class=\"hidden\"> in \(environment.rawValue)</span></a>"
            : "Why is \(ActivityPage.hiddenReason)."
        return Layout.notice(
            .warning, "\(environment.rawValue.capitalized): \(Self.sentences(found, "in the last \(span)")) \(lastSeen(found))",
            "<p>\(why)</p>")
    }

    /// The sentence with the time of the last counted refusal.
    private func lastSeen(_ found: Administration.RefusedDevices) -> String {
        let minutes = max(0, context.administration.credentials.time - found.lastAt) / 60_000_000
        let ago =
            switch minutes {
            case 0: "less than a minute"
            case 1: "1 minute"
            case ..<60: "\(minutes) minutes"
            case ..<120: "1 hour"
            default: "\(minutes / 60) hours"
            }
        return "Last seen \(ago) ago."
    }

    private static func sentences(_ found: Administration.RefusedDevices, _ span: String) -> String {
        func count(_ number: Int, _ one: String) -> String { "\(Layout.count(number)) \(one)\(number == 1 ? "" : "s")" }
        var sentences: [String] = []
        if found.records > 0 {
            let records =
                "\(found.isCut ? "At least " : "")\(count(found.records, "record")) of \(count(found.accountsOfRecords, "account"))"
            sentences.append("\(records) \(found.records == 1 && !found.isCut ? "was" : "were") refused \(span).")
        }
        if found.accountsOfRequests > 0 {
            sentences.append("Requests of \(count(found.accountsOfRequests, "account")) were refused \(span): \(causes(found)).")
        }
        return sentences.joined(separator: " ")
    }

    /// The causes for which whole requests were refused, with their numbers.
    private static func causes(_ found: Administration.RefusedDevices) -> String {
        func text(_ number: Int, _ one: String, _ many: String) -> String? {
            switch number {
            case 0: nil
            case 1: one
            default: many.replacing("#", with: Layout.count(number))
            }
        }
        let causes = [
            text(found.devicesOfEndedSessions, "the session of 1 device has ended", "the sessions of # devices have ended"),
            text(found.disabledAccounts, "1 account is disabled", "# accounts are disabled"),
            text(found.accountsWithoutRoom, "1 account has no room", "# accounts have no room"),
            text(
                found.accountsWithoutOtherRoom,
                "1 account sent something too large, or the server or the owner of a zone has no room",
                "# accounts sent something too large, or the server or the owner of a zone has no room"),
        ].compactMap(\.self)
        return causes.joined(separator: "; ")
    }

    /// The warning of accounts that have used most or all of their quotas.
    ///
    /// - Parameter full: These accounts, the one with most bytes first. All have quotas.
    private static func warning(ofFull full: [Administration.AccountUsage], _ first: String) -> String {
        let refused = full.count { account in account.quota.map { account.bytes >= $0 } ?? false }
        guard full.count > 1 else {
            return refused == 0
                ? "\(first) has used nine tenths of its quota: its devices will soon be refused."
                : "\(first) has used its whole quota: its devices cannot save what needs room."
        }
        let warning = "\(full.count) accounts have used nine tenths of their quota, \(first) the most."
        guard refused > 0 else { return warning }
        let (who, whose) = refused == 1 ? ("1 has", "its") : ("\(refused) have", "their")
        return "\(warning) \(who) used the whole of it: \(whose) devices cannot save what needs room."
    }

    private func table(_ usage: [Administration.ContainerUsage]) -> HTML {
        let used = Set(usage.map(\.container))
        let rows =
            usage.map { line in row(line) }
            + context.containers.filter { !used.contains($0) }.map { name in
                Layout.row([HTML(name), "<span class=\"quiet-text\">nothing yet</span>", .none, .none, .none, .none])
            }
        guard !rows.isEmpty else { return .none }
        return Layout.table("Containers", ["Container", "Environment", "Records", "Assets", "Stored", "Owners"], rows)
    }

    private func row(_ line: Administration.ContainerUsage) -> HTML {
        let link: HTML = """
            <a href="\(Address(["records"], query: [("c", line.container), ("e", line.environment.rawValue)]))">\(line.container)</a>
            """
        return """
            <tr><td>\(link)</td><td>\(line.environment.rawValue)</td><td class="number">\(Layout.count(line.totals.records))</td>\
            <td class="number">\(Layout.count(line.totals.assets))</td><td class="number">\(Layout.bytes(line.bytes))</td>\
            <td class="number">\(Layout.count(line.totals.owners))</td></tr>
            """
    }

    /// The faults, each with its remedy.
    private func notices(
        _ container: String, _ usage: [Administration.ContainerUsage]
    ) async throws(AdministrationError) -> HTML {
        var notices: HTML = .none
        if context.administration.isOperator {
            let full = try await context.administration.accountUsage(of: container, environment: context.environment)
                .filter { account in account.quota.map { $0 > 0 && account.bytes >= $0 / 10 * 9 } ?? false }
            if let first = full.first, let email = first.email {
                let link: HTML =
                    "<p><a href=\"\(context.address("account", query: [("id", email)]))\">Look at the account and its quota</a></p>"
                notices += Layout.notice(.warning, Self.warning(ofFull: full, email), link)
            }
        }
        let isUsed = usage.contains { $0.container == container && $0.environment == .production }
        guard isUsed else { return notices }
        let differences = try await context.administration.schemaDifferences(of: container).filter {
            $0.change != .onlyInProduction
        }
        if !differences.isEmpty {
            notices += Layout.notice(
                .info,
                "The schema of \(container) differs from production in \(differences.count) \(differences.count == 1 ? "place" : "places").",
                "<p><a href=\"\(context.address("schema"))\">See what would be deployed</a></p>")
        }
        return notices
    }
}
