import TidemarkIdentity
import TidemarkModel

/// The cells that show a session, on the operators' page of an account and on a person's own page.
enum SessionCells {
    /// The device or browser of a session: its name and system, and the session's first characters, by which commands name it.
    static func device(_ session: Session) -> HTML {
        device(name: session.device, system: session.system, session: session.id)
    }

    static func device(name device: String, system: String, session: String) -> HTML {
        """
        \(name(device)) <code>\(String(session.prefix(4)))</code>\
        \(HTML.when(!system.isEmpty, "<br><span class=\"hint\">\(system)</span>"))
        """
    }

    /// The browser of a session of pages.
    ///
    /// - Parameter isOwn: Whether the session is that of the request.
    static func device(_ session: PageSession, isOwn: Bool) -> HTML {
        """
        \(name(session.device)) <code>\(String(session.id.prefix(4)))</code>\
        \(HTML.when(isOwn, " <span class=\"tag\">this session</span>"))
        """
    }

    /// The container and the environment of a session.
    static func place(_ session: Session) -> HTML { HTML("\(session.container) (\(session.environment.rawValue))") }

    private static func name(_ device: String) -> String { device.isEmpty ? "unknown" : BrowserName.short(device) }
}
