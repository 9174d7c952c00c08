/// How people call a browser: `Chrome on Linux` in place of what it says of itself.
enum BrowserName {
    /// What a browser says of itself, and what it is called. Most say the names of others as well, so the first that is found counts.
    private static let browsers = [
        ("Edg/", "Edge"), ("EdgA/", "Edge"), ("EdgiOS/", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"),
        ("FxiOS/", "Firefox"), ("Firefox/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
    ]
    private static let systems = [
        ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("CrOS", "ChromeOS"),
        ("Mac OS X", "macOS"), ("Linux", "Linux"),
    ]

    /// - Parameter device: The name of what a session is on.
    /// - Returns: The name as it is where it is no browser's.
    static func short(_ device: String) -> String {
        guard device.hasPrefix("Mozilla/"), let browser = browsers.first(where: { device.contains($0.0) })?.1 else {
            return device
        }
        guard let system = systems.first(where: { device.contains($0.0) })?.1 else { return browser }
        return "\(browser) on \(system)"
    }
}
