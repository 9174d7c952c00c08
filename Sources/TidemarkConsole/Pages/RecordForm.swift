import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The fields of an address or a form that name a zone.
struct PlaceFields {
    let place: RecordPlace
    /// Whether the zone is named; otherwise it is the default zone.
    private let isZoneNamed: Bool

    /// - Throws: ``AdministrationError`` `invalid`, `notFound`.
    init(_ context: Context) throws(AdministrationError) {
        isZoneNamed = context.value("zone") != nil
        let scope = DatabaseScope.allCases.first { $0.name == context.value("db") } ?? .public
        place = RecordPlace(
            container: try context.demandContainer(), environment: context.environment, scope: scope,
            account: scope == .public ? "" : context.value("account") ?? "",
            zone: context.value("zone") ?? CloudZoneID.default.zoneName,
            zoneOwner: scope == .shared ? context.value("owner") ?? "" : "")
    }

    /// Names and values for an address.
    var query: [(name: String, value: String?)] {
        [
            ("db", place.scope.name), ("account", place.account.isEmpty ? nil : place.account), ("zone", place.zone),
            ("owner", place.zoneOwner.isEmpty ? nil : place.zoneOwner),
        ]
    }

    /// Hidden fields for a form.
    var hiddenFields: HTML {
        query.html { name, value in value.map { "<input type=\"hidden\" name=\"\(name)\" value=\"\($0)\">" } ?? .none }
    }

    /// The place in words.
    var title: String {
        place.scope == .public ? "public database" : "\(place.scope.name) database of \(place.account), \(zoneTitle)"
    }

    var zoneTitle: String { place.zoneID.isDefault ? "the default zone" : "zone \(place.zone)" }

    /// The text of the field for the zone. In a private database an empty field means the zone with records, so that a default
    /// zone that was named keeps its name. In the other databases an empty field means the default zone, so that no name remains
    /// if another database is chosen.
    private var zoneField: String {
        place.zoneID.isDefault && !(isZoneNamed && place.scope == .private) ? "" : place.zone
    }

    /// The fields that choose the place.
    var choice: HTML {
        """
        <div class="field"><label for="db">Database</label><select id="db" name="db">
        \(DatabaseScope.allCases.html { Layout.option($0.name, $0.name.capitalized, isChosen: $0 == place.scope) })
        </select></div>
        <div class="field"><label for="account">Account <span class="hint">private and shared</span></label>
        <input id="account" name="account" autocomplete="off" value="\(place.account)"></div>
        <div class="field"><label for="zone">Zone <span class="hint">empty: the \(place.scope == .private ? "one with records" : "default zone")</span></label>
        <input id="zone" name="zone" autocomplete="off" value="\(zoneField)"></div>
        \(HTML.when(
            place.scope == .shared,
            """
            <div class="field"><label for="owner">Owner of the zone</label>
            <input id="owner" name="owner" autocomplete="off" value="\(place.zoneOwner)"></div>
            """))
        """
    }
}

/// Shows the values of fields, and makes the inputs for them.
enum FieldView {
    /// The number of characters from which a text gets a wider column, and three lines at the most.
    private static let longText = 40

    /// A value in a cell of a table: short.
    static func cell(
        _ value: CloudValue?, of field: String, _ record: CloudRecord, _ context: Context, _ place: PlaceFields
    ) -> HTML {
        switch value {
        case nil: return "<span class=\"quiet-text\">–</span>"
        case .timestamp(let time)?: return Layout.time(time)
        case .reference(let reference)?: return link(to: reference.recordName, context, place)
        case .asset(let asset)?:
            // The browser asks for a thumbnail of each asset. The answer for a file that is no picture is an error.
            return asset.size <= AssetPreview.thumbSize
                ? thumb(of: field, record, context, place) : HTML(Layout.bytes(asset.size))
        case .list(let elements, of: .asset)?: return "\(elements.count) \(elements.count == 1 ? "file" : "files")"
        case .bytes(let data)?: return HTML(Layout.bytes(Int64(data.count)))
        case let value?:
            let text = FieldText.text(value)
            guard text.count > longText else { return HTML(text) }
            let shown: String = text.count > 200 ? String(text.prefix(200)) + "…" : text
            return "<div class=\"long\">\(shown)</div>"
        }
    }

    /// A value on the page of its record: whole.
    ///
    /// - Parameter previews: The previews of assets.
    static func whole(
        _ value: CloudValue, of field: String, _ record: CloudRecord, _ context: Context, _ place: PlaceFields,
        _ previews: [CloudAsset: AssetPreview]
    ) -> HTML {
        switch value {
        case .asset(let asset): return whole(asset, 0, of: field, record, context, place, previews[asset])
        case .list(let elements, of: .asset):
            return elements.enumerated().html { index, element in
                guard case .asset(let asset) = element else { return .none }
                return "<div>\(whole(asset, index, of: field, record, context, place, previews[asset]))</div>"
            }
        case .list(let elements, of: .reference):
            return elements.html { element in
                if case .reference(let reference) = element {
                    "\(link(to: reference.recordName, context, place)) "
                } else {
                    .none
                }
            }
        case .reference(let reference):
            return "\(link(to: reference.recordName, context, place)) <span class=\"tag\">\(reference.action.rawValue)</span>"
        case .timestamp(let time): return Layout.time(time)
        case .location(let place): return "\("\(place.latitude)"), \("\(place.longitude)")"
        default: return HTML(FieldText.text(value))
        }
    }

    private static func whole(
        _ asset: CloudAsset, _ index: Int, of field: String, _ record: CloudRecord, _ context: Context, _ place: PlaceFields,
        _ preview: AssetPreview?
    ) -> HTML {
        let shown: HTML =
            switch preview {
            case .picture?:
                """
                <img class="preview" loading="lazy" src="\(assetAddress(field, index, record, context, place, isPreview: true))" alt="Preview of \(field)">
                """
            case .text(let text)?:
                "<pre class=\"preview\" tabindex=\"0\" role=\"region\" aria-label=\"The beginning of \(field)\">\(text)</pre>"
            case .none(let reason)?: "<p class=\"hint\">\(reason)</p>"
            case nil: .none
            }
        return """
            \(shown)
            <a href="\(assetAddress(field, index, record, context, place, isPreview: false))">Download<span class="hidden"> \(field) \(index + 1)</span></a> \(Layout.bytes(asset.size))
            <span class="mono quiet-text">\(asset.digest)</span>
            """
    }

    /// A link to a record of the same zone.
    static func link(to name: String, _ context: Context, _ place: PlaceFields) -> HTML {
        "<a href=\"\(context.address("record", query: place.query + [("name", name)]))\">\(name)</a>"
    }

    private static func thumb(of field: String, _ record: CloudRecord, _ context: Context, _ place: PlaceFields) -> HTML {
        """
        <img class="thumb" loading="lazy" width="48" height="48" src="\(assetAddress(field, 0, record, context, place, isPreview: true))" alt="\(field)">
        """
    }

    private static func assetAddress(
        _ field: String, _ index: Int, _ record: CloudRecord, _ context: Context, _ place: PlaceFields, isPreview: Bool
    ) -> Address {
        context.address(
            "asset",
            query: place.query + [
                ("name", record.id.recordName), ("field", field), ("index", String(index)), ("preview", isPreview ? "1" : nil),
            ])
    }

    /// The fields of a record that devices write, and no form sends; empty if there are none.
    static func ofDevices(_ record: CloudRecord) -> HTML {
        let fields = record.fields.filter { CloudRecord.isReserved($0.key) }.sorted { $0.key < $1.key }
        guard !fields.isEmpty else { return .none }
        return """
            <section aria-label="Written by devices"><p class="hint">Devices write these fields, such as when each of the others was edited. They can't be edited here.</p>
            <dl class="facts">\(fields.html { field, value in
                "<dt>\(field)<br><span class=\"hint\">\(value.type.description)</span></dt><dd>\(FieldText.text(value))</dd>"
            })</dl></section>
            """
    }

    /// The most bytes of a text that can be edited in a form.
    static let editable = 20_000

    /// A field of a form, with its value when the form was made.
    ///
    /// - Parameters:
    ///   - text: The value that the field shows.
    ///   - was: The value when the form was made; `nil` for none.
    ///   - isCleared: Whether the box is marked that removes the field's files.
    static func input(
        _ field: String, _ type: FieldType, _ text: String, was: String?, isCleared: Bool, number: Int
    ) -> HTML {
        let label: HTML =
            "<label for=\"f\(number)\">\(field) <span class=\"hint\">\(type.description)\(hint(type))</span></label>"
        guard type.scalar != .asset else {
            let clear: HTML = """
                <label class="choice"><input type="checkbox" name="clear.\(field)" value="1"\(HTML.when(isCleared, " checked"))>Remove \(type.isList ? "all files" : "the file")<span class="hidden"> of \(field)</span></label>
                """
            return """
                <div class="field">\(label)<input id="f\(number)" name="file.\(field)" type="file">\(HTML.when(was != nil, clear))</div>
                """
        }
        guard text.utf8.count <= editable else {
            return
                "<div class=\"field\"><span class=\"name\">\(field)</span> <span class=\"hint\">\(type.description), can't be edited here</span></div>"
        }
        let kept: HTML = "<input type=\"hidden\" name=\"was.\(field)\" value=\"\(was ?? "")\">"
        let isLong = type == .string || type.isList || type == .bytes
        let control: HTML =
            isLong
            ? "<textarea id=\"f\(number)\" name=\"is.\(field)\" rows=\"\(min(8, 1 + text.count / 60))\">\n\(text)</textarea>"
            : "<input id=\"f\(number)\" name=\"is.\(field)\" autocomplete=\"off\" value=\"\(text)\">"
        return "<div class=\"field\">\(label)\(control)\(kept)</div>"
    }

    private static func hint(_ type: FieldType) -> String {
        if type.scalar == .asset { return type.isList ? ", a file more" : ", a file in place of the one it has" }
        if type.isList { return ", a JSON array" }
        switch type.scalar {
        case .timestamp: return ", such as 2026-11-21T08:00:00Z, in UTC"
        case .bytes: return ", base64"
        case .location: return ", latitude, longitude"
        case .reference: return ", the name of a record"
        default: return ""
        }
    }

    /// A form's text with line feeds as ends of lines, as in stored texts.
    static func normalized(_ text: String) -> String { text.replacing("\r\n", with: "\n") }
}
