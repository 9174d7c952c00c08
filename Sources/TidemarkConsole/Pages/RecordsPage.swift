import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The page of the records that a query finds.
struct RecordsPage {
    let context: Context

    init(_ context: Context) { self.context = context }

    /// The most filters, and the most sorts, of a query of the page.
    private static let conditions = 5

    func reply() async throws(AdministrationError) -> ConsoleReply {
        let place = try PlaceFields(context)
        if context.request.isPost { return try await addIndex(place) }
        let schema = try await context.administration.schema(of: place.place.container, environment: context.environment)
        let query = query()
        let form = added(to: schema.types[query.type], query.type) + builder(query, place, schema)
        do throws(AdministrationError) {
            if let zone = try await unnamedZone(place) {
                let others = place.query.filter { $0.name != "zone" }
                return .redirect(
                    to: context.address("records", query: others + [("zone", zone.zoneName)] + parts(query)))
            }
            guard !query.type.isEmpty else {
                return page(form + (try await otherZones(place, isNoted: false)) + types(schema, place))
            }
            let continuation = context.value("cont").map(QueryContinuation.init(rawValue:))
            let found = try await context.administration.records(
                query, in: place.place, limit: limit, continuation: continuation)
            let zones: HTML = found.records.isEmpty ? try await otherZones(place, isNoted: true) : .none
            return page(form + results(found, query, place) + zones + (try await request(query, place)))
        } catch {
            let status = error.code == .notFound ? 404 : error.code == .forbidden ? 403 : 400
            guard error.code != .failed, error.code != .busy else { throw error }
            return page(form + problem(error, query, place), status: status)
        }
    }

    /// The zone that is shown if the request names none, and the default zone of a private database has no records.
    private func unnamedZone(_ place: PlaceFields) async throws(AdministrationError) -> CloudZoneID? {
        guard place.place.scope == .private, !place.place.account.isEmpty, context.value("zone") == nil else { return nil }
        return try await context.administration.zoneWithRecords(in: place.place)
    }

    private func page(_ content: HTML, status: Int = 200) -> ConsoleReply {
        Layout.page(context, .records, title: "Records", status: status, content)
    }

    private var limit: Int { context.value("limit").flatMap { Int($0) }.map { min(max($0, 1), 200) } ?? 50 }

    /// The query in the page's address.
    private func query() -> RecordQuery {
        var query = RecordQuery(type: context.value("type") ?? "")
        for number in 0..<Self.conditions {
            if let field = context.value("f\(number)"), let name = context.value("o\(number)"),
                let comparator = CloudQuery.Comparator(rawValue: name)
            {
                query.filters.append(.init(field, comparator, context.value("v\(number)") ?? ""))
            }
            if let field = context.value("s\(number)") {
                query.sorts.append(.init(field, isAscending: context.value("d\(number)") != "descending"))
            }
        }
        return query
    }

    /// The values of a query for an address.
    private func parts(_ query: RecordQuery) -> [(name: String, value: String?)] {
        var parts: [(name: String, value: String?)] = [("type", query.type)]
        for (number, filter) in query.filters.enumerated() {
            parts += [("f\(number)", filter.field), ("o\(number)", filter.comparator.rawValue), ("v\(number)", filter.value)]
        }
        for (number, sort) in query.sorts.enumerated() {
            parts += [("s\(number)", sort.field), ("d\(number)", sort.isAscending ? nil : "descending")]
        }
        return parts + [("limit", limit == 50 ? nil : String(limit))]
    }

    // The builder

    private func builder(_ query: RecordQuery, _ place: PlaceFields, _ schema: CloudSchema) -> HTML {
        let types = schema.types.keys.sorted()
        let fields = (schema.types[query.type]?.fields.keys.sorted() ?? []) + RecordQuery.systemFields.map(\.name)
        let filters = (query.filters.map { Optional($0) } + [nil]).prefix(Self.conditions)
        let sorts = (query.sorts.map { Optional($0) } + [nil]).prefix(Self.conditions)
        let conditions: HTML = """
            <fieldset><legend>Filters</legend>\(filters.enumerated().html { filter($0, $1, fields) })</fieldset>
            <fieldset><legend>Order</legend>\(sorts.enumerated().html { sort($0, $1, fields) })</fieldset>
            """
        return """
            <form class="card" method="get" action="\(Address(["records"]))">
            <input type="hidden" name="c" value="\(place.place.container)"><input type="hidden" name="e" value="\(context.environment.rawValue)">
            <div class="row">\(place.choice)
            <div class="field"><label for="type">Record type</label><select id="type" name="type">
            <option value="">Choose…</option>\(types.html { Layout.option($0, isChosen: $0 == query.type) })
            </select></div></div>
            \(HTML.when(!query.type.isEmpty, conditions))
            <div class="actions"><button>\(query.type.isEmpty ? "Show records" : "Run the query")</button>
            <a class="button quiet" href="\(context.address("record", query: place.query + [("new", "1"), ("type", query.type.isEmpty ? nil : query.type)]))">New record</a></div>
            </form>
            """
    }

    private func filter(_ number: Int, _ filter: RecordQuery.Filter?, _ fields: [String]) -> HTML {
        """
        <div class="row">
        <label><span class="hidden">Field of filter \(number + 1)</span><select name="f\(number)"><option value="">No filter</option>\
        \(fields.html { Layout.option($0, isChosen: $0 == filter?.field) })</select></label>
        <label><span class="hidden">Comparison of filter \(number + 1)</span><select name="o\(number)">\
        \(CloudQuery.Comparator.allCases.html { Layout.option($0.rawValue, $0.words, isChosen: $0 == filter?.comparator) })</select></label>
        <label><span class="hidden">Value of filter \(number + 1)</span><input name="v\(number)" autocomplete="off" placeholder="Value" value="\(filter?.value ?? "")"></label>
        </div>
        """
    }

    private func sort(_ number: Int, _ sort: RecordQuery.Sort?, _ fields: [String]) -> HTML {
        """
        <div class="row">
        <label><span class="hidden">Field of order \(number + 1)</span><select name="s\(number)"><option value="">By name</option>\
        \(fields.html { Layout.option($0, isChosen: $0 == sort?.field) })</select></label>
        <label><span class="hidden">Direction of order \(number + 1)</span><select name="d\(number)">\
        \(Layout.option("ascending", isChosen: sort?.isAscending ?? true))\(Layout.option("descending", isChosen: sort?.isAscending == false))</select></label>
        </div>
        """
    }

    /// The record types to choose from, before one is chosen.
    private func types(_ schema: CloudSchema, _ place: PlaceFields) -> HTML {
        guard !schema.types.isEmpty else {
            return Layout.notice(
                .info,
                "\(place.place.container) has no record types in \(context.environment.rawValue). The first record of a type makes it in development."
            )
        }
        return Layout.table(
            "Record types", ["Record type", "Fields"],
            schema.types.sorted { $0.key < $1.key }.map { name, type in
                Layout.row([
                    "<a href=\"\(context.address("records", query: place.query + [("type", name)]))\">\(name)</a>",
                    HTML(type.fields.keys.sorted().joined(separator: ", ")),
                ])
            })
    }

    /// Links to the other zones of the account's database, because devices store their records in a zone of their own.
    private func otherZones(_ place: PlaceFields, isNoted: Bool) async throws(AdministrationError) -> HTML {
        guard place.place.scope != .public, !place.place.account.isEmpty else { return .none }
        let zones = try await context.administration.otherZones(than: place.place, isNoted: isNoted)
        guard !zones.isEmpty else { return .none }
        let links = zones.html { zone in
            let others: [(name: String, value: String?)] = [
                ("zone", zone.zoneName), ("owner", place.place.scope == .shared ? zone.ownerName : nil),
            ]
            let kept = place.query.filter { $0.name != "zone" && $0.name != "owner" }
            let title = zone.zoneName + (place.place.scope == .shared ? " of \(zone.ownerName)" : "")
            return
                " <a class=\"button quiet\" href=\"\(context.address("records", query: kept + others + parts(query())))\">\(title)</a>"
        }
        return Layout.notice(.info, "This is \(place.zoneTitle). The database has other zones:", "<p>\(links)</p>")
    }

    // Results

    private func results(_ found: Administration.RecordPage, _ query: RecordQuery, _ place: PlaceFields) -> HTML {
        let damaged: HTML =
            found.failed.isEmpty
            ? .none
            : Layout.notice(
                .error,
                "\(found.failed.count) \(found.failed.count == 1 ? "record is" : "records are") damaged: "
                    + found.failed.map(\.id.recordName).joined(separator: ", "),
                "<p>A device that has them sends them again; or restore the cloud from a backup.</p>")
        guard !found.records.isEmpty else {
            return damaged + "<div class=\"card empty\">No record of the \(place.title) matches.</div>"
        }
        let fields = Set(found.records.flatMap(\.fields.keys)).subtracting([CloudRecord.editedField]).sorted()
        let rows = found.records.map { record in
            Layout.row(
                [FieldView.link(to: record.id.recordName, context, place)]
                    + fields.map { FieldView.cell(record.fields[$0], of: $0, record, context, place) }
                    + [record.modified.map { Layout.time($0.time) } ?? .none])
        }
        let next: HTML =
            found.continuation.map { continuation in
                """
                <a class="button quiet" href="\(context.address("records", query: place.query + parts(query) + [("cont", continuation.rawValue)]))">Next \(limit)</a>
                """
            } ?? .none
        let first: HTML =
            context.value("cont") == nil
            ? .none
            : "<a class=\"button quiet\" href=\"\(context.address("records", query: place.query + parts(query)))\">First page</a>"
        return """
            \(damaged)
            \(Layout.table("Records", ["recordName"] + fields + ["modified"], rows))
            <div class="actions">\(first)\(next)<span class="quiet-text">\(found.records.count) \(found.records.count == 1 ? "record" : "records") on this page, times in UTC</span></div>
            """
    }

    /// The query as a client sends it.
    private func request(_ query: RecordQuery, _ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let request = try await context.administration.request(of: query, in: place.place, limit: limit)
        return """
            <details><summary>The request as JSON and as curl</summary>
            <h2>POST <code>\(request.path)</code></h2>
            <pre tabindex="0">\(request.body)</pre>
            <pre tabindex="0">\(request.curl(context.request.baseURL))</pre>
            </details>
            """
    }

    // Errors

    private func problem(_ error: AdministrationError, _ query: RecordQuery, _ place: PlaceFields) -> HTML {
        guard let missing = error.index else { return Layout.notice(.error, Layout.sentence(error.publicMessage)) }
        guard context.environment == .development else {
            return Layout.notice(
                .error, error.publicMessage,
                """
                <p>Add the index in development, then deploy the schema: \
                <a href="\(Address(["schema"], query: [("c", context.container), ("e", "development")]))">to the schema</a>.</p>
                """)
        }
        let remedy: HTML = """
            <form method="post" action="\(Address(["records"]))">
            \(context.hiddenFields)\(place.hiddenFields)
            \((parts(query)).html { name, value in value.map { "<input type=\"hidden\" name=\"\(name)\" value=\"\($0)\">" } ?? .none })
            <input type="hidden" name="field" value="\(missing.field)"><input type="hidden" name="index" value="\(missing.index)">
            <button>Add the index \(missing.index) to \(missing.field)</button>
            </form>
            """
        return Layout.notice(.error, error.publicMessage, remedy)
    }

    /// Adds the index that a query lacked, and runs the query.
    private func addIndex(_ place: PlaceFields) async throws(AdministrationError) -> ConsoleReply {
        let query = query()
        guard let field = context.value("field"), let index = context.value("index").flatMap(CloudSchema.Index.init(rawValue:))
        else {
            throw AdministrationError(.invalid, "say which index is to be added")
        }
        guard context.environment == .development else {
            throw AdministrationError(.forbidden, "the schema of production is what was deployed; add the index in development")
        }
        try await context.administration.addIndex(index, to: field, in: query.type, container: place.place.container)
        let done: [(name: String, value: String?)] = [("added", field), ("index", index.rawValue)]
        return .redirect(to: context.address("records", query: place.query + parts(query) + done))
    }

    /// The message on the added index that the page's address names, if the type has it.
    private func added(to type: CloudSchema.RecordType?, _ name: String) -> HTML {
        guard let field = context.value("added"), let index = context.value("index").flatMap(CloudSchema.Index.init(rawValue:)),
            type?.indexes(of: field).contains(index) == true
        else { return .none }
        return Layout.notice(.good, "The index \(index.rawValue) is added to \(field) of \(name).")
    }
}

extension CloudQuery.Comparator {
    /// The comparison in words.
    fileprivate var words: String {
        switch self {
        case .equals: "equals"
        case .notEquals: "does not equal"
        case .lessThan: "is less than"
        case .lessThanOrEquals: "is at most"
        case .greaterThan: "is greater than"
        case .greaterThanOrEquals: "is at least"
        case .near: "is near (lat, lon, metres)"
        case .containsAllTokens: "has all words of"
        case .containsAnyTokens: "has a word of"
        case .isIn: "is one of (a, b)"
        case .isNotIn: "is none of (a, b)"
        case .listContains: "list has"
        case .listDoesNotContain: "list has not"
        case .listContainsAny: "list has one of (a, b)"
        case .listContainsNone: "list has none of (a, b)"
        case .listContainsAll: "list has all of (a, b)"
        case .listDoesNotContainAll: "list lacks one of (a, b)"
        case .beginsWith: "begins with"
        case .doesNotBeginWith: "does not begin with"
        case .listMemberBeginsWith: "an element begins with"
        case .noListMemberBeginsWith: "no element begins with"
        }
    }
}
