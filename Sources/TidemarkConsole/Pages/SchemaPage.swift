import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The page of record types, their fields and indexes, and the differences from production.
struct SchemaPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        let container = try context.demandContainer()
        return try await context.request.isPost ? change(container) : show(container)
    }

    /// - Parameter hasChanged: Whether the differences from production have changed since the deployment was asked for.
    private func show(_ container: String, hasChanged: Bool = false) async throws -> ConsoleReply {
        let schema = try await context.administration.schema(of: container, environment: context.environment)
        let isDevelopment = context.environment == .development
        let note = added(to: schema) ?? context.value("done").flatMap { Self.notes[$0] }
        let done: HTML = note.map { Layout.notice(.good, $0) } ?? .none
        let changed: HTML = HTML.when(
            hasChanged,
            Layout.notice(
                .warning, "Nothing is deployed: the development schema has changed since its differences were listed. Look again."
            ))
        let difference: HTML = isDevelopment ? try await self.difference(container) : .none
        let types = schema.types.sorted { $0.key < $1.key }
        return Layout.page(
            context, .schema, title: "Schema", status: hasChanged ? 409 : 200,
            """
            \(changed)\(done)
            <p>\(isDevelopment ? "In development, records that are saved add their types and fields." : "The schema of production is what was deployed, and fixed.")</p>
            <div class="actions"><a class="button quiet" href="\(context.address("schema.json"))">Export as a file</a></div>
            \(difference)
            \(types.isEmpty ? "<div class=\"card empty\">There are no record types yet.</div>" : .none)
            \(types.enumerated().html { number, entry in self.type(entry.key, entry.value, number, isDevelopment) })
            \(HTML.when(isDevelopment, additions(types.map(\.key))))
            """)
    }

    /// The messages after an action, by the form's action.
    private static let notes = [
        "indexes": "The indexes are set.",
        "import": "The types and fields of the file are added to the development schema.",
        "import-nothing": "The development schema has all of it: nothing is added.",
        "remove": "It is removed from the development schema.",
        "reset": "The development environment is empty, and has production's schema.",
        "deploy": "The schema is deployed: production takes what development has.",
    ]

    /// The message on the added field that the page's address names; `nil` if the schema has no such field.
    private func added(to schema: CloudSchema) -> String? {
        guard context.value("done") == "add", let type = context.value("in"), let field = context.value("added"),
            let kind = schema.types[type]?.fields[field]?.type
        else { return nil }
        return "The field \(field) (\(kind)) is added to \(type) in the development schema."
    }

    /// The forms that add to the schema.
    private func additions(_ types: [String]) -> HTML {
        let (add, file) = (context.form("add"), context.form("import"))
        // The link at a sync error names the field that the schema lacks.
        let kind = add.value("kind", context.value("kind") ?? FieldType.string.description)
        let (type, field) = (add.value("type", context.value("type") ?? ""), add.value("field", context.value("field") ?? ""))
        let kinds = FieldType.Scalar.allCases.flatMap { [FieldType($0), FieldType.list(of: $0)] }
        return """
            <h2 id="add">Add to the schema</h2>
            <form class="card" method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="add">\(add.alert)
            <div class="row"><div class="field"><label for="type">Record type <span class="hint">or a new one</span></label>
            <input id="type" name="type" list="types" autocomplete="off" required maxlength="255" value="\(type)"\(add.wrong("type"))>
            <datalist id="types">\(types.html { "<option value=\"\($0)\"></option>" })</datalist></div>
            <div class="field"><label for="field">Field</label><input id="field" name="field" autocomplete="off" required maxlength="255" value="\(field)"\(add.wrong("field"))></div>
            <div class="field"><label for="kind">Type</label><select id="kind" name="kind">\(kinds.html { Layout.option($0.description, isChosen: $0.description == kind) })</select></div>
            <div class="field"><button>Add the field</button></div></div></form>
            <details\(file.open)><summary>Import from a file</summary>
            <form class="card" method="post" enctype="multipart/form-data" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="import">\(file.alert)
            <div class="field"><label for="upload">File <span class="hint">of the export, or of ‘tidemark schema show’</span></label>
            <input id="upload" name="upload" type="file" accept=".json,application/json"></div>
            <div class="field"><label for="file">Or what the file has</label>
            <textarea id="file" name="file" rows="8"\(file.wrong("file"))>\n\(file.value("file"))</textarea></div>
            <button>Import</button></form></details>
            <h2>Begin again</h2>
            <form class="card" method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="reset">
            <p class="hint">Deletes all records of the development environment, and makes its schema that of production.</p>
            <button class="danger">Reset development…</button></form>
            """
    }

    // A type

    /// - Parameter number: The number of the type's form on the page.
    private func type(_ name: String, _ type: CloudSchema.RecordType, _ number: Int, _ isEditable: Bool) -> HTML {
        let (form, id) = (context.form("indexes", ["type": name]), "indexes\(number)")
        func row(
            _ field: String, _ kind: String, _ suitable: [CloudSchema.Index], canGo: Bool
        ) -> HTML { self.row(name, field, kind, type.indexes(of: field), suitable, isEditable ? (form, id) : nil, canGo: canGo) }
        let fields = type.fields.sorted { $0.key < $1.key }
        let rows =
            [row("recordName", "", [.queryable], canGo: false)]
            + fields.map { row($0, $1.type, $1.fieldType.map(Self.suitable) ?? [], canGo: $0 != CloudRecord.editedField) }
        let set: HTML = """
            <form id="\(id)" method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="indexes"><input type="hidden" name="type" value="\(name)">
            <button class="quiet">Set the indexes<span class="hidden"> of \(name)</span></button></form>
            """
        let remove: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="remove"><input type="hidden" name="type" value="\(name)">
            <button class="danger">Remove the type…</button></form>
            """
        return """
            <section aria-label="\(name)"><h2>\(name)</h2>
            \(form.alert)
            \(Layout.table("Fields of \(name)", ["Field", "Type", "Indexes"] + (isEditable ? [""] : []), rows))
            \(HTML.when(isEditable, "<div class=\"actions\">\(set)\(remove)</div>"))
            </section>
            """
    }

    /// - Parameter form: The form that sets the indexes of all fields of the type, and its identifier; `nil` if they can't be
    ///   changed.
    private func row(
        _ type: String, _ field: String, _ kind: String, _ indexes: Set<CloudSchema.Index>, _ suitable: [CloudSchema.Index],
        _ form: (state: PageForm, id: String)?, canGo: Bool
    ) -> HTML {
        let name: HTML = "<span id=\"\(Self.place(of: field, in: type))\">\(field)</span>"
        guard let form else {
            let tags = CloudSchema.Index.allCases.filter(indexes.contains).html { "<span class=\"tag\">\($0.rawValue)</span> " }
            return Layout.row([name, HTML(kind), indexes.isEmpty ? "<span class=\"quiet-text\">none</span>" : tags])
        }
        let boxes = suitable.html { index in
            """
            <label class="choice"><input type="checkbox" form="\(form.id)" name="\(Self.box(field, index))" value="1"\
            \(HTML.when(form.state.isMarked(Self.box(field, index), indexes.contains(index)), " checked"))>\
            \(index.rawValue)<span class="hidden"> \(field)</span></label>
            """
        }
        let was: HTML = """
            <input type="hidden" form="\(form.id)" name="was.\(field)" value="\(Self.names(indexes))">
            """
        let remove: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="remove"><input type="hidden" name="type" value="\(type)">
            <input type="hidden" name="field" value="\(field)">
            <button class="danger">Remove<span class="hidden"> \(field)</span>…</button></form>
            """
        return Layout.row([
            name, HTML(kind), suitable.isEmpty ? "<span class=\"quiet-text\">can have none</span>" : boxes + was,
            canGo ? remove : .none,
        ])
    }

    /// The identifier of a field's element on the page, for links.
    static func place(of field: String, in type: String) -> String { "field.\(type).\(field)" }

    /// The name of the check box of an index.
    private static func box(_ field: String, _ index: CloudSchema.Index) -> String { "\(index.rawValue).\(field)" }

    private static func names(_ indexes: Set<CloudSchema.Index>) -> String {
        indexes.map(\.rawValue).sorted().joined(separator: " ")
    }

    /// Sets the indexes of those fields of a type whose check boxes were changed.
    private func setIndexes(_ container: String) async throws(AdministrationError) {
        let form = context.request.form
        for (name, was) in form.sorted(by: { $0.key < $1.key }) where name.hasPrefix("was.") {
            let field = String(name.dropFirst(4))
            let indexes = Set(CloudSchema.Index.allCases.filter { form[Self.box(field, $0)] != nil })
            guard Self.names(indexes) != was else { continue }
            try await context.administration.setIndexes(indexes, of: field, in: context.value("type") ?? "", container: container)
        }
    }

    /// The indexes that a field of a type can have.
    private static func suitable(_ type: FieldType) -> [CloudSchema.Index] {
        CloudSchema.Index.allCases.filter { $0.suits(type) }
    }

    // Production

    private func difference(_ container: String) async throws(AdministrationError) -> HTML {
        let differences = try await context.administration.schemaDifferences(of: container)
        let deployed = differences.filter(\.isDeployed)
        guard !differences.isEmpty else { return Layout.notice(.good, "Production has the same schema.") }
        let list = Self.list(differences.map(\.sentence))
        guard !deployed.isEmpty else { return Layout.notice(.info, "Production has all of it, and more:", list) }
        guard !deployed.contains(where: \.isRefused) else {
            return Layout.notice(
                .warning, "It can't be deployed: a field has another type in production. Give it another name here.", list)
        }
        let form: HTML = """
            <form method="post" action="\(Address(["schema"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="deploy">
            <input type="hidden" name="expected" value="\(CloudSchemaDifference.digest(of: deployed))"><button>Deploy to production…</button></form>
            """
        return Layout.notice(.info, "It differs from production:", list + form)
    }

    private static func list(_ sentences: [String]) -> HTML { "<ul>\(sentences.html { "<li>\($0)</li>" })</ul>" }

    // Changing

    private func change(_ container: String) async throws -> ConsoleReply {
        guard context.environment == .development else {
            throw AdministrationError(.forbidden, "the schema of production is what was deployed; change it in development")
        }
        let action = context.value("action")
        switch action {
        case "indexes": try await setIndexes(container)
        case "add":
            guard let type = context.value("type"), let field = context.value("field"),
                let kind = context.value("kind").flatMap({ FieldType($0) })
            else { throw AdministrationError(.invalid, "say which field of which type is to be added") }
            try await context.administration.addToSchema([type: [field: kind]], of: container)
            return .redirect(to: context.address("schema", query: [("done", "add"), ("in", type), ("added", field)]))
        case "import":
            let file = context.request.files["upload"].flatMap { $0.isEmpty ? nil : String(decoding: $0, as: UTF8.self) }
            guard let text = file ?? context.value("file") else {
                throw AdministrationError(.invalid, "choose a file, or enter what it has", field: "file")
            }
            let added = try await blaming(file == nil ? "file" : "upload") { () throws(AdministrationError) in
                try await context.administration.importSchema(text, into: container)
            }
            if added.isEmpty { return .redirect(to: context.address("schema", query: [("done", "import-nothing")])) }
        case "remove":
            if let page = try await remove(context.value("type") ?? "", context.value("field"), container) { return page }
        case "reset":
            let question =
                "All records of everybody in the development environment of \(container) are deleted, their shares and assets among them, and the schema there "
                + "becomes that of production. Devices lose their copies. It can't be undone. Production stays as it is."
            if let page = try await console.confirmation(context, question, "Reset development", isAlwaysAsked: true) {
                return page
            }
            _ = try await context.administration.resetDevelopment(of: container)
        case "deploy":
            let differences = try await context.administration.schemaDifferences(of: container).filter(\.isDeployed)
            // The question is about the differences that the page has shown.
            let expected = context.value("expected") ?? ""
            guard expected == CloudSchemaDifference.digest(of: differences) else {
                return try await show(container, hasChanged: true)
            }
            let sentences = differences.map(\.sentence)
            let question =
                "The development schema of \(container) will be deployed to production, where types and fields can't be removed. What changes there:"
            if let page = try await console.confirmation(
                context, question, title: "Deploy the schema to production?", details: Self.list(sentences), "Deploy it")
            {
                return page
            }
            do throws(AdministrationError) {
                try await context.administration.deploySchema(of: container, expecting: expected)
            } catch {
                guard error.code == .conflict else { throw error }
                return try await show(container, hasChanged: true)
            }
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
        return .redirect(to: context.address("schema", query: [("done", action)]))
    }

    /// Asks, and then removes a type or a field. If records have it, a box has to be marked, like the option `--force` of the
    /// command.
    ///
    /// - Returns: The page that asks; `nil` once the type or field is removed.
    private func remove(_ type: String, _ field: String?, _ container: String) async throws -> ConsoleReply? {
        let administration = context.administration
        let known = try await administration.schema(of: container, environment: .development).types[type]
        let spread = try await administration.recordSpread(of: type, having: field, in: container)
        let what = field.map { "the field \($0) of \(type)" } ?? "the type \(type)"
        var question =
            "\(what.prefix(1).uppercased())\(what.dropFirst()) is removed from the development schema of \(container). "
        var mark: String?
        if spread.records == 0 {
            question += "No record has it."
        } else {
            let kind = field.flatMap { known?.fields[$0]?.type } ?? ""
            let (verb, keep) = spread.records == 1 ? ("has", "It keeps what it has") : ("have", "They keep what they have")
            question += "\(spread.text) \(verb) it. \(keep), and no query finds \(spread.records == 1 ? "it" : "them") by it. "
            if field == nil {
                question +=
                    "The next record of the type makes it again, with the types of its fields: devices that hold values of other types are refused then."
            } else {
                question +=
                    "The next record that has the field decides its type. If that is not \(kind), devices that hold values of \(kind) are refused then, and leave the new values in the cloud."
            }
            mark = "Remove it although \(spread.text) \(verb) it"
        }
        if let page = try await console.confirmation(context, question, title: "Remove \(what)?", mark: mark, "Remove it") {
            return page
        }
        _ = try await administration.removeFromSchema(type: type, field: field, of: container, isForced: mark != nil)
        return nil
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
