/// The form in which a destination is added or edited, with what was typed.
struct DestinationForm {
    let layout: Layout
    let session: Session
    /// `nil` for a new one.
    var destination: Destination?
    /// The edit that the form belongs to.
    var edit = ""
    var caption = ""
    var details = ""
    var problem: Problem?

    enum Problem {
        case invalid(String, field: String?)
        /// Others have saved something else meanwhile.
        case conflict(theirs: Destination, fields: [String])
    }

    var html: HTML {
        let title = destination == nil ? "Add a place" : "Edit"
        let address = destination.map { Path.destination($0, "edit") } ?? "/destinations"
        return layout.document(
            title,
            """
            <div class="narrow"><h1>\(title)</h1>
            \(explanation)
            <form method="post" action="\(address)" enctype="multipart/form-data">\(Layout.token(session))
            <input type="hidden" name="edit" value="\(edit)">
            <label class="field"><span>Place</span>
            <input name="caption" required maxlength="\(Destination.captionLimit)" value="\(caption)"\(mark("caption"))></label>
            <label class="field"><span>What was it like?</span>
            <textarea name="details" rows="6" maxlength="\(Destination.detailsLimit)"\(mark("details"))>\n\(details)</textarea></label>
            <label class="field"><span>\(destination == nil ? "Photo" : "Another photo")</span>
            <input type="file" name="photo" accept="image/jpeg,image/png"\(HTML.when(destination == nil, " required"))\(mark("photo"))>
            <span class="hint">JPEG or PNG, up to 20 MB. It is made upright and at most 2,048 pixels large.</span></label>
            <label class="check"><input type="checkbox" name="position"> Keep where the photo was taken</label>
            <div class="row"><button\(isConflict ? " name=\"overwrite\" value=\"1\"" : HTML.none)>\(isConflict ? "Save mine" : "Save")</button>
            <a class="button quiet" href="\(destination.map { Path.destination($0) } ?? "/")">\(isConflict ? "Keep theirs" : "Cancel")</a></div>
            </form></div>
            """)
    }

    private var isConflict: Bool { if case .conflict = problem { true } else { false } }

    private func mark(_ field: String) -> HTML {
        guard case .invalid(_, let wrong) = problem, wrong == field else { return .none }
        return " aria-invalid=\"true\" aria-describedby=\"problem\" autofocus"
    }

    private var explanation: HTML {
        switch problem {
        case nil: return .none
        case .invalid(let message, _):
            return "<div id=\"problem\">\(Layout.notice(.error, message))</div>"
        case .conflict(let theirs, let fields):
            let values: [HTML] = [
                fields.contains("caption") ? "<dt>Place</dt><dd>\(theirs.caption)</dd>" : .none,
                fields.contains("details") ? "<dt>Story</dt><dd>\(theirs.details)</dd>" : .none,
                fields.contains("image") ? "<dt>Photo</dt><dd>another photo</dd>" : .none,
            ]
            return """
                <div class="notice error" role="alert"><p>Somebody else has saved something else while you were writing:</p>
                <dl>\(values)</dl></div>
                """
        }
    }
}
