import TidemarkIdentity
import TidemarkModel

/// How pages show a session: the operators' page of an account, and a person's own page.
enum SessionCells {
    /// What a session of a device or a browser is on: its name, its system, and the session's first characters, by which commands name it.
    static func device(_ session: Session) -> HTML {
        device(name: session.device, system: session.system, session: session.id)
    }

    static func device(name device: String, system: String, session: String) -> HTML {
        """
        \(name(device)) <code>\(String(session.prefix(4)))</code>\
        \(HTML.when(!system.isEmpty, "<br><span class=\"hint\">\(system)</span>"))
        """
    }

    /// What a session of pages is on.
    ///
    /// - Parameter isOwn: Whether it is the one that asks.
    static func device(_ session: PageSession, isOwn: Bool) -> HTML {
        """
        \(name(session.device)) <code>\(String(session.id.prefix(4)))</code>\
        \(HTML.when(isOwn, " <span class=\"tag\">this session</span>"))
        """
    }

    /// What a session is for.
    static func place(_ session: Session) -> HTML { HTML("\(session.container) (\(session.environment.rawValue))") }

    private static func name(_ device: String) -> String { device.isEmpty ? "unknown" : BrowserName.short(device) }
}
