import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// Record types, their fields and indexes, and what differs from production.
struct SchemaPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        let container = try context.demandContainer()
        if context.request.isPost { return try await change(container) }
        let schema = try await context.administration.schema(of: container, environment: context.environment)
        let isDevelopment = context.environment == .development
        let isReset = context.value("done") == "reset"
        let done: HTML =
            context.value("done") == nil
            ? .none
            : Layout.notice(
                .good, isReset ? "The development environment is empty, and has production's schema." : "The schema is changed.")
        let difference: HTML = isDevelopment ? try await self.difference(container) : .none
        let types = schema.types.sorted { $0.key < $1.key }
        return Layout.page(
            context, .schema, title: "Schema",
            """
            \(done)
            <p>\(isDevelopment ? "In development, records that are saved add their types and fields." : "The schema of production is what was deployed, and fixed.")</p>
            <div class="actions"><a class="button quiet" href="\(context.address("schema.json"))">Export as a file</a></div>
            \(difference)
            \(types.isEmpty ? "<div class=\"card empty\">There are no record types yet.</div>" : .none)
            \(types.html { name, type in self.type(name, type, isDevelopment) })
            \(HTML.when(isDevelopment, additions(types.map(\.key))))
            """)
    }

    /// Forms that add to the schema.
    private func additions(_ types: [String]) -> HTML {
        let kinds = FieldType.Scalar.allCases.flatMap { [FieldType($0), FieldType.list(of: $0)] }
        return """
            <h2>Add to the schema</h2>
            <form class="card" method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="add">
            <div class="row"><div class="field"><label for="type">Record type <span class="hint">or a new one</span></label>
            <input id="type" name="type" list="types" autocomplete="off" required maxlength="255">
            <datalist id="types">\(types.html { "<option value=\"\($0)\"></option>" })</datalist></div>
            <div class="field"><label for="field">Field</label><input id="field" name="field" autocomplete="off" required maxlength="255"></div>
            <div class="field"><label for="kind">Type</label><select id="kind" name="kind">\(kinds.html { Layout.option($0.description, isChosen: $0 == .string) })</select></div>
            <div class="field"><button>Add the field</button></div></div></form>
            <details><summary>Import from a file</summary>
            <form class="card" method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="import">
            <div class="field"><label for="file">What the file has <span class="hint">as the export, or ‘tidemark schema show’</span></label>
            <textarea id="file" name="file" rows="8" required></textarea></div>
            <button>Import</button></form></details>
            <h2>Begin again</h2>
            <form class="card" method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="reset">
            <p class="hint">Deletes all records of the development environment, and makes its schema that of production.</p>
            <button class="danger">Reset development…</button></form>
            """
    }

    // A type

    private func type(_ name: String, _ type: CloudSchema.RecordType, _ isEditable: Bool) -> HTML {
        let fields = type.fields.sorted { $0.key < $1.key }
        let rows =
            [row(name, "recordName", "", type.indexes(of: "recordName"), [.queryable], isEditable, canGo: false)]
            + fields.map { field, known in
                row(
                    name, field, known.type, type.indexes(of: field), known.fieldType.map(Self.suitable) ?? [], isEditable,
                    canGo: true)
            }
        let remove: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="remove"><input type="hidden" name="type" value="\(name)">
            <button class="danger">Remove the type…</button></form>
            """
        return """
            <section aria-label="\(name)"><h2>\(name)</h2>
            \(Layout.table("Fields of \(name)", ["Field", "Type", "Indexes"] + (isEditable ? [""] : []), rows))
            \(HTML.when(isEditable, "<div class=\"actions\">\(remove)</div>"))
            </section>
            """
    }

    private func row(
        _ type: String, _ field: String, _ kind: String, _ indexes: Set<CloudSchema.Index>, _ suitable: [CloudSchema.Index],
        _ isEditable: Bool, canGo: Bool
    ) -> HTML {
        guard isEditable else {
            let tags = CloudSchema.Index.allCases.filter(indexes.contains).html { "<span class=\"tag\">\($0.rawValue)</span> " }
            return Layout.row([HTML(field), HTML(kind), indexes.isEmpty ? "<span class=\"quiet-text\">none</span>" : tags])
        }
        let boxes = suitable.html { index in
            """
            <label class="choice"><input type="checkbox" name="\(index.rawValue)" value="1"\(HTML.when(indexes.contains(index), " checked"))>\(index.rawValue)</label>
            """
        }
        let form: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="index"><input type="hidden" name="type" value="\(type)">
            <input type="hidden" name="field" value="\(field)">
            \(boxes)<button class="quiet">Set<span class="hidden"> the indexes of \(field)</span></button></form>
            """
        let remove: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="remove"><input type="hidden" name="type" value="\(type)">
            <input type="hidden" name="field" value="\(field)">
            <button class="danger">Remove<span class="hidden"> \(field)</span>…</button></form>
            """
        return Layout.row([
            HTML(field), HTML(kind), suitable.isEmpty ? "<span class=\"quiet-text\">can have none</span>" : form,
            canGo ? remove : .none,
        ])
    }

    /// The indexes that a field of a type can have.
    private static func suitable(_ type: FieldType) -> [CloudSchema.Index] {
        CloudSchema.Index.allCases.filter { $0.suits(type) }
    }

    // Production

    private func difference(_ container: String) async throws(AdministrationError) -> HTML {
        let differences = try await context.administration.schemaDifferences(of: container)
        let deployed = differences.filter { $0.change != .onlyInProduction }
        guard !differences.isEmpty else { return Layout.notice(.good, "Production has the same schema.") }
        let list: HTML = "<ul>\(differences.html { "<li>\($0.sentence)</li>" })</ul>"
        guard !deployed.isEmpty else { return Layout.notice(.info, "Production has all of it, and more:", list) }
        guard !deployed.contains(where: \.isRefused) else {
            return Layout.notice(
                .warning, "It can't be deployed: a field has another type in production. Give it another name here.", list)
        }
        let form: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="deploy"><button>Deploy to production…</button></form>
            """
        return Layout.notice(.info, "It differs from production:", list + form)
    }

    // Changing

    private func change(_ container: String) async throws -> ConsoleReply {
        guard context.environment == .development else {
            throw AdministrationError(.forbidden, "the schema of production is what was deployed; change it in development")
        }
        switch context.value("action") {
        case "index":
            let indexes = CloudSchema.Index.allCases.filter { context.value($0.rawValue) != nil }
            try await context.administration.setIndexes(
                Set(indexes), of: context.value("field") ?? "", in: context.value("type") ?? "", container: container)
        case "add":
            guard let type = context.value("type"), let field = context.value("field"),
                let kind = context.value("kind").flatMap({ FieldType($0) })
            else { throw AdministrationError(.invalid, "say which field of which type is to be added") }
            try await context.administration.addToSchema([type: [field: kind]], of: container)
        case "import": try await context.administration.importSchema(context.value("file") ?? "", into: container)
        case "remove":
            let (type, field) = (context.value("type") ?? "", context.value("field"))
            let what = field.map { "The field \($0) of \(type)" } ?? "The type \(type)"
            let question =
                "\(what) is removed from the development schema of \(container). Records that have it keep it, and no query finds them by it."
            if let page = try await console.confirmation(context, question, "Remove it") { return page }
            _ = try await context.administration.removeFromSchema(type: type, field: field, of: container, isForced: true)
        case "reset":
            let question =
                "All records of everybody in the development environment of \(container) are deleted, their shares and assets among them, and the schema there "
                + "becomes that of production. Devices lose their copies. It can't be undone. Production stays as it is."
            if let page = try await console.confirmation(context, question, "Reset development", isAlwaysAsked: true) {
                return page
            }
            _ = try await context.administration.resetDevelopment(of: container)
            return .redirect(to: context.address("schema", query: [("done", "reset")]))
        case "deploy":
            let sentences = try await context.administration.schemaDifferences(of: container)
                .filter { $0.change != .onlyInProduction }.map(\.sentence)
            let question =
                "The development schema of \(container) is deployed to production, where types and fields can't be removed: "
                + sentences.joined(separator: "; ") + "."
            if let page = try await console.confirmation(context, question, "Deploy it") { return page }
            try await context.administration.deploySchema(of: container)
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
        return .redirect(to: context.address("schema", query: [("done", "1")]))
    }

    /// The schema as a file.
    func file() async throws(AdministrationError) -> ConsoleReply {
        let container = try context.demandContainer()
        let text = try await context.administration.schemaFile(of: container, environment: context.environment)
        var reply = ConsoleReply(200, type: "application/json", .text(text))
        reply.headers.append(
            ("Content-Disposition", "attachment; filename=\"\(container)-\(context.environment.rawValue).json\""))
        return reply
    }
}
