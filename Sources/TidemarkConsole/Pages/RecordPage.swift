import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The page of a record: its values, and the forms that create, change and delete it.
struct RecordPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        let place = try PlaceFields(context)
        if context.request.isPost {
            switch context.value("action") {
            case "delete": return try await delete(place)
            default: return try await save(place)
            }
        }
        if let refused = context.refusal, refused.form["action"] == nil { return try await form(again: refused, place) }
        if context.value("new") != nil { return try await form(nil, place) }
        let name = try self.name()
        let record = try await context.administration.record(name, in: place.place)
        if context.value("edit") != nil { return try await form(record, place) }
        return try await show(record, place)
    }

    private func name() throws(AdministrationError) -> String {
        guard let name = context.value("name") else {
            throw AdministrationError(.invalid, "say which record: its name is missing")
        }
        return name
    }

    private func address(_ place: PlaceFields, _ name: String, _ more: (name: String, value: String?)...) -> Address {
        context.address("record", query: place.query + [("name", name)] + more)
    }

    // Showing

    /// The most assets of a record that have previews.
    private static let previews = 20

    private func show(_ record: CloudRecord, _ place: PlaceFields) async throws(AdministrationError) -> ConsoleReply {
        let name = record.id.recordName
        let fields = record.fields.sorted { $0.key < $1.key }
        let saved: HTML = context.value("saved") == nil ? .none : Layout.notice(.good, "The record is saved.")
        let isShare = record.type == CloudShare.recordType
        let users = try await UserNames([record.created, record.modified].compactMap { $0?.userRecordName }, context)
        var previews: [CloudAsset: AssetPreview] = [:]
        for asset in fields.flatMap({ Self.assets(of: $0.value) }).prefix(Self.previews) where previews[asset] == nil {
            do throws(AdministrationError) {
                previews[asset] = try await AssetPreview(of: asset, in: place.place, context.administration)
            } catch {
                // An asset that can't be read does not keep the record from being shown.
                previews[asset] = AssetPreview.none(Layout.message(of: error))
            }
        }
        let actions: HTML = """
            <div class="actions"><a class="button" href="\(address(place, name, ("edit", "1")))">Edit</a>
            <form method="post" action="\(Address(["record"]))">\(context.hiddenFields)\(place.hiddenFields)
            <input type="hidden" name="action" value="delete"><input type="hidden" name="name" value="\(name)">
            <input type="hidden" name="type" value="\(record.type)"><input type="hidden" name="tag" value="\(record.changeTag ?? "")">
            <button class="danger">Delete…</button></form></div>
            """
        return Layout.page(
            context, .records, title: name,
            """
            \(saved)
            <p><a href="\(context.address("records", query: place.query + [("type", record.type)]))">\(record.type)</a> in the \(place.title)</p>
            \(HTML.when(!isShare, actions))
            <div class="card"><h2>Fields</h2>
            \(fields.isEmpty ? "<p class=\"quiet-text\">The record has no fields.</p>" : .none)
            <dl class="facts">\(fields.html { field, value in
                """
                <dt>\(field)<br><span class="hint">\(value.type.description)\(HTML.when(record.encryptedFields[field] != nil, ", encrypted by a client"))</span></dt>
                <dd>\(FieldView.whole(value, of: field, record, context, place, previews))</dd>
                """
            })</dl></div>
            <div class="card"><h2>About it</h2><dl class="facts">
            \(fact("Parent", record.parent.map { FieldView.link(to: $0, context, place) }))
            \(fact("Share", record.shareName.map { FieldView.link(to: $0, context, place) }))
            \(fact("Created", record.created.map { stamp($0, users) }))
            \(fact("Modified", record.modified.map { stamp($0, users) }))
            \(fact("Change tag", record.changeTag.map { "<code>\($0)</code>" }))
            </dl></div>
            \(try await history(name, place))
            <details><summary>As JSON</summary><pre tabindex="0">\(RecordRequest.indented(Array(Administration.json(record).utf8)))</pre></details>
            """)
    }

    private static func assets(of value: CloudValue) -> [CloudAsset] {
        switch value {
        case .asset(let asset): [asset]
        case .list(let elements, of: .asset): elements.flatMap(assets)
        default: []
        }
    }

    /// The record's history, as far as it is known.
    private func history(_ name: String, _ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let entries = try await context.administration.changes(of: name, in: place.place)
        let table: HTML =
            entries.isEmpty
            ? "<p class=\"quiet-text\">Nobody has changed it by the console or a command.</p>"
            : ActivityPage.table(entries, try await context.administration.addresses(in: entries))
        return """
            <h2>History</h2>
            <p class="hint">The cloud keeps the record as it is now, and no earlier versions: devices have those (‘tidemark history’). Changes by the
            console and by commands are in the audit log, with what was there before and after.</p>
            \(table)
            """
    }

    private func fact(_ name: String, _ value: HTML?) -> HTML { value.map { "<dt>\(name)</dt><dd>\($0)</dd>" } ?? .none }

    private func stamp(_ stamp: CloudRecord.Stamp, _ users: UserNames) -> HTML {
        "\(Layout.time(stamp.time)) UTC by \(users.link(stamp.userRecordName))"
    }

    // The form

    /// The form of a refused change, with the typed values.
    private func form(again refused: RefusedForm, _ place: PlaceFields) async throws(AdministrationError) -> ConsoleReply {
        // Only an existing record has a version.
        guard refused.form["tag"]?.isEmpty == false else { return try await form(nil, place, message: refused.alert) }
        let name = try self.name()
        return try await form(ofVersionOf: name, place, message: refused.alert, status: 200)
    }

    /// The form of an existing record, with the typed values. It changes the version for which it was made.
    private func form(
        ofVersionOf name: String, _ place: PlaceFields, message: HTML, status: Int
    ) async throws(AdministrationError) -> ConsoleReply {
        var found: CloudRecord?
        do throws(AdministrationError) {
            found = try await context.administration.record(name, in: place.place)
        } catch {
            guard error.code == .notFound else { throw error }
        }
        guard let record = found else { return try await form(nil, place, message: message + Self.deleted, status: status) }
        return try await form(record, place, message: message, status: status, isVersionKept: true)
    }

    /// The message that the record of a form was deleted.
    private static let deleted = Layout.notice(
        .error, "The record was deleted meanwhile. Saving makes it again, with what is below.")

    /// - Parameters:
    ///   - record: The record in the cloud; `nil` for a new one.
    ///   - message: The message above the form.
    ///   - isVersionKept: Whether the form changes the version for which it was made, although the record may have a newer one.
    ///     Saving then shows the changes since.
    private func form(
        _ record: CloudRecord?, _ place: PlaceFields, message: HTML = .none, status: Int = 200, isVersionKept: Bool = false
    ) async throws(AdministrationError) -> ConsoleReply {
        let posted = context.request.isPost ? context.request.form : context.refusal?.form ?? [:]
        let type = record?.type ?? context.value("type") ?? posted["type"] ?? ""
        let schema = try await context.administration.schema(of: place.place.container, environment: context.environment)
        guard !type.isEmpty else { return typeForm(schema, place) }
        var types = schema.types[type]?.fields.compactMapValues(\.fieldType) ?? [:]
        for (field, value) in record?.fields ?? [:] where types[field] == nil { types[field] = value.type }
        // The form has no inputs for fields that only devices write.
        types = types.filter { !CloudRecord.isReserved($0.key) }
        let inputs = types.sorted { $0.key < $1.key }.enumerated().html { number, entry in
            let now = record?.fields[entry.key].map(FieldText.text)
            let before = posted["was.\(entry.key)"].map(FieldView.normalized)
            let base = isVersionKept ? before ?? now : now
            // A typed value stays. An untouched field has the record's value, or the form's if the record was deleted.
            let typed = posted["is.\(entry.key)"].map(FieldView.normalized)
            let isTouched = typed != nil && (record == nil || typed != before ?? "")
            return FieldView.input(
                entry.key, entry.value, isTouched ? typed ?? "" : base ?? "", was: base,
                isCleared: posted["clear.\(entry.key)"] != nil, number: number)
        }
        let name: HTML =
            record.map { "<input type=\"hidden\" name=\"name\" value=\"\($0.id.recordName)\">" }
                ?? """
                <div class="field"><label for="name">Name <span class="hint">empty for a random one</span></label>
                <input id="name" name="name" autocomplete="off" maxlength="255" value="\(posted["name"] ?? "")"></div>
                """
        let tag = isVersionKept ? posted["tag"] ?? "" : record?.changeTag ?? ""
        let (parentNow, parentBefore) = (record?.parent ?? "", posted["wasParent"])
        let parentBase = isVersionKept ? parentBefore ?? parentNow : parentNow
        let isParentKept = record != nil && parentBefore != nil && posted["parent"] == parentBefore
        let back =
            record.map { address(place, $0.id.recordName) } ?? context.address("records", query: place.query + [("type", type)])
        return Layout.page(
            context, .records, title: record.map { "Edit \($0.id.recordName)" } ?? "New \(type)", status: status,
            """
            \(message)
            <form class="card" method="post" enctype="multipart/form-data" action="\(Address(["record"]))">
            \(context.hiddenFields)\(place.hiddenFields)
            <input type="hidden" name="type" value="\(type)"><input type="hidden" name="tag" value="\(tag)">
            \(name)
            \(inputs)
            <div class="field"><label for="parent">Parent <span class="hint">the name of the record above it</span></label>
            <input id="parent" name="parent" autocomplete="off" value="\(isParentKept ? parentBase : posted["parent"] ?? parentBase)">
            <input type="hidden" name="wasParent" value="\(parentBase)"></div>
            \(HTML.when(context.environment == .development, newField(posted)))
            \(record.map(FieldView.ofDevices) ?? .none)
            <p class="hint">A field that is emptied loses its value. Times are in UTC. Files have \(Layout.bytes(ConsoleRequest.formSize)) at the most
            here; larger ones come by a client. After an error, choose files again.</p>
            <div class="actions"><button>Save</button><a class="button quiet" href="\(back)">Cancel</a></div>
            </form>
            """)
    }

    /// A field that the schema lacks: in development, the record makes it.
    private func newField(_ posted: [String: String]) -> HTML {
        """
        <details\(HTML.when(posted["newName"]?.isEmpty == false, " open"))><summary>Another field</summary><div class="row">
        <div class="field"><label for="newName">Name</label><input id="newName" name="newName" autocomplete="off" value="\(posted["newName"] ?? "")"></div>
        <div class="field"><label for="newType">Type</label><select id="newType" name="newType">
        \(FieldType.Scalar.allCases.flatMap { [FieldType($0), FieldType.list(of: $0)] }.html { type in
            Layout.option(type.description, isChosen: type.description == posted["newType"])
        })</select></div>
        <div class="field"><label for="newValue">Value</label><input id="newValue" name="newValue" autocomplete="off" value="\(posted["newValue"] ?? "")"></div>
        <div class="field"><label for="newFile">File <span class="hint">of an asset</span></label><input id="newFile" name="file" type="file"></div>
        </div></details>
        """
    }

    private func typeForm(_ schema: CloudSchema, _ place: PlaceFields) -> ConsoleReply {
        let fields = (place.query + [("new", "1")]).html { name, value in
            value.map { "<input type=\"hidden\" name=\"\(name)\" value=\"\($0)\">" } ?? .none
        }
        return Layout.page(
            context, .records, title: "New record",
            """
            <form class="card" method="get" action="\(Address(["record"]))">\(fields)
            <input type="hidden" name="c" value="\(place.place.container)"><input type="hidden" name="e" value="\(context.environment.rawValue)">
            <div class="field"><label for="type">Record type <span class="hint">in development also a new one</span></label>
            <input id="type" name="type" list="types" autocomplete="off" required maxlength="255">
            <datalist id="types">\(schema.types.keys.sorted().html { "<option value=\"\($0)\">" })</datalist></div>
            <button>Go on</button></form>
            """)
    }

    // Changing

    private func save(_ place: PlaceFields) async throws(AdministrationError) -> ConsoleReply {
        let form = context.request.form
        guard let type = context.value("type") else { throw AdministrationError(.invalid, "say which type the record has") }
        let tag = context.value("tag")
        let name = context.value("name") ?? UUID().uuidString.lowercased()
        var record = CloudRecord(CloudRecordID(name, in: place.place.zoneID), type: type, changeTag: tag)
        record.parent = context.value("parent")
        var cleared: Set<String> = []
        do throws(AdministrationError) {
            let known = try await context.administration.schema(of: place.place.container, environment: context.environment)
                .types[type]?.fields
            for (key, text) in form where key.hasPrefix("is.") {
                let field = String(key.dropFirst(3))
                let text = FieldView.normalized(text)
                guard text != FieldView.normalized(form["was.\(field)"] ?? "") else { continue }
                try Self.checkNotReserved(field)
                if text.isEmpty {
                    cleared.insert(field)
                } else {
                    guard let kind = known?[field]?.fieldType else {
                        throw AdministrationError(
                            .invalid, "'\(type)' has no field '\(field.prefix(100))' any more; reload the page")
                    }
                    record.fields[field] = try FieldText.value(text, as: kind, field: field)
                }
            }
            let newField = context.value("newName")
            if let newField { try Self.checkNotReserved(newField) }
            if let field = newField, let kind = context.value("newType").flatMap({ FieldType($0) }), kind.scalar != .asset {
                record.fields[field] = try FieldText.value(form["newValue"] ?? "", as: kind, field: field)
            }
            try await takeFiles(known ?? [:], newField, place, &record, &cleared)
            let saved = try await context.administration.save(record, clearing: cleared, in: place.place)
            return .redirect(to: address(place, saved.id.recordName, ("saved", "1")))
        } catch {
            switch error.code {
            case .conflict: return try await conflict(error, record, place)
            case .invalid, .missingIndex, .notFound, .forbidden, .exists, .busy:
                let message = Layout.notice(.error, Layout.message(of: error))
                let status = Layout.status(of: error).0
                guard tag != nil else { return try await self.form(nil, place, message: message, status: status) }
                // The form keeps its version, so that the next save still shows the changes since the form was opened.
                return try await self.form(ofVersionOf: name, place, message: message, status: status)
            default: throw error
            }
        }
    }

    /// - Throws: ``AdministrationError`` `invalid` for a field that only devices write.
    private static func checkNotReserved(_ field: String) throws(AdministrationError) {
        guard CloudRecord.isReserved(field) else { return }
        throw AdministrationError(
            .invalid, "'\(field.prefix(100))' is a field that devices write: it can't be edited; choose a name without 'tide_'")
    }

    /// Uploads the files of the form, and names them in the record. A file for a list is added at the list's end.
    ///
    /// - Parameter newField: The name of a field that the schema lacks.
    private func takeFiles(
        _ known: [String: CloudSchema.Field], _ newField: String?, _ place: PlaceFields, _ record: inout CloudRecord,
        _ cleared: inout Set<String>
    ) async throws(AdministrationError) {
        for key in context.request.form.keys where key.hasPrefix("clear.") {
            let field = String(key.dropFirst(6))
            try Self.checkNotReserved(field)
            cleared.insert(field)
        }
        for (key, contents) in context.request.files.sorted(by: { $0.key < $1.key }) where !contents.isEmpty {
            let isNew = key == "file"
            guard let field = isNew ? newField : key.hasPrefix("file.") ? String(key.dropFirst(5)) : nil,
                let kind = isNew ? context.value("newType").flatMap({ FieldType($0) }) : known[field]?.fieldType,
                kind.scalar == .asset
            else { throw AdministrationError(.invalid, "a file is for a field of the type asset") }
            try Self.checkNotReserved(field)
            let asset = CloudValue.asset(try await context.administration.upload(contents, in: place.place))
            guard kind.isList else {
                record.fields[field] = asset
                cleared.remove(field)
                continue
            }
            var files: [CloudValue] = []
            if record.changeTag != nil, !cleared.contains(field),
                case .list(let there, of: .asset)? = try await context.administration.record(
                    record.id.recordName, in: place.place
                ).fields[field]
            {
                files = there
            }
            record.fields[field] = .list(files + [asset], of: .asset)
            cleared.remove(field)
        }
    }

    /// Shows the record's present values beside the typed ones. The form then changes the present version.
    private func conflict(
        _ error: AdministrationError, _ wanted: CloudRecord, _ place: PlaceFields
    ) async throws(AdministrationError) -> ConsoleReply {
        guard let there = error.record else {
            return try await form(nil, place, message: Self.deleted, status: 409)
        }
        let form = context.request.form
        let fields = Set(there.fields.keys).union(form.keys.filter { $0.hasPrefix("is.") }.map { String($0.dropFirst(3)) })
        func row(_ name: String, was: String?, now: String, typed: String?) -> HTML? {
            let (was, typed) = (was.map(FieldView.normalized) ?? now, typed.map(FieldView.normalized) ?? now)
            guard now != was || typed != was else { return nil }
            return Layout.row([
                HTML(name), HTML(was), now == was ? HTML(now) : "<strong>\(now)</strong>",
                typed == was ? "<span class=\"quiet-text\">unchanged</span>" : "<strong>\(typed)</strong>",
            ])
        }
        var rows = fields.sorted().compactMap { field in
            row(
                field, was: form["was.\(field)"], now: there.fields[field].map(FieldText.text) ?? "", typed: form["is.\(field)"])
        }
        let parent = row("Parent", was: form["wasParent"], now: there.parent ?? "", typed: form["parent"])
        rows += [parent].compactMap(\.self)
        let users = try await UserNames([there.modified].compactMap { $0?.userRecordName }, context)
        let who: HTML = there.modified.map { " at \(Layout.time($0.time)) UTC, by \(users.link($0.userRecordName))" } ?? .none
        let isNew = wanted.changeTag == nil
        let message = Layout.notice(
            .warning,
            isNew
                ? "There is a record of this name already." : "The record was changed while you edited it. Nothing is saved yet.",
            "<p>It was changed\(who). Saving again changes what it is now, in the fields that you have changed.</p>")
        return try await self.form(
            there, place, message: message + Layout.table("Changes", ["Field", "When you began", "Now", "Yours"], rows),
            status: 409)
    }

    private func delete(_ place: PlaceFields) async throws -> ConsoleReply {
        let name = try self.name()
        let question =
            "The record \(name) of the \(place.title) is deleted, and with it the records that refer to it with DELETE_SELF."
        if let page = try await console.confirmation(context, question, "Delete the record") { return page }
        try await context.administration.delete(name, ifTag: context.value("tag"), in: place.place)
        return .redirect(to: context.address("records", query: place.query + [("type", context.value("type"))]))
    }
}
