/// The name of a browser for people: `Chrome on Linux` in place of its header `User-Agent`.
enum BrowserName {
    /// Parts of the header, with the names for people. Most browsers also send the names of others, so the first part that is
    /// found counts.
    private static let browsers = [
        ("Edg/", "Edge"), ("EdgA/", "Edge"), ("EdgiOS/", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"),
        ("FxiOS/", "Firefox"), ("Firefox/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
    ]
    private static let systems = [
        ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("CrOS", "ChromeOS"),
        ("Mac OS X", "macOS"), ("Linux", "Linux"),
    ]

    /// - Parameter device: The name of a session's device or browser.
    /// - Returns: The short name; the name as it is, if it is no browser's.
    static func short(_ device: String) -> String {
        guard device.hasPrefix("Mozilla/"), let browser = browsers.first(where: { device.contains($0.0) })?.1 else {
            return device
        }
        guard let system = systems.first(where: { device.contains($0.0) })?.1 else { return browser }
        return "\(browser) on \(system)"
    }
}
