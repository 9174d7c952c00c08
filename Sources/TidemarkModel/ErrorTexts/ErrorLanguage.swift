import Foundation

/// The language of the texts that errors have for people: `localizedDescription` and `recoverySuggestion`.
///
/// ```swift
/// ErrorLanguage.use(.german)
/// do {
///     try await journal.save(destination)
/// } catch {
///     show(error.localizedDescription, (error as? LocalizedError)?.recoverySuggestion)
/// }
/// ```
///
/// The sentences of error codes, causes, sharing rules and remedies are in tables. A message that names a file, a record or a value is
/// in English; where the description is a sentence of a table in another language, `failureReason` has that message.
public enum ErrorLanguage: String, Hashable, Codable, CaseIterable, Sendable {
    /// English. It also stands for every language that is not listed here.
    case english = "en"
    /// German.
    case german = "de"

    /// The language in this task: ``override`` if it is set, otherwise the language of ``use(_:)``, otherwise the system's.
    public static var current: ErrorLanguage { override ?? chosen.withLock(\.self) ?? system }

    /// Sets the language for the whole program.
    ///
    /// - Parameter language: The language; `nil` for the system's.
    public static func use(_ language: ErrorLanguage?) { chosen.withLock { $0 = language } }

    /// The language of a task and its child tasks. It takes precedence over the program's language. For tests.
    @TaskLocal public static var override: ErrorLanguage?

    private static let chosen = LockedValue<ErrorLanguage?>(nil)

    /// The system's language. It is read once, at the first use.
    public static let system = ErrorLanguage(preferred: preferredLanguages(ProcessInfo.processInfo.environment))

    /// Makes the first known language of a list of preferred ones, such as `de_CH.UTF-8` or `de-AT`; English if none is known.
    public init(preferred languages: [String]) {
        let codes = languages.lazy.map { $0.prefix(while: \.isLetter).lowercased() }
        self = codes.compactMap(ErrorLanguage.init(rawValue:)).first ?? .english
    }

    /// The languages that a person prefers, the most preferred one first.
    ///
    /// - Parameter environment: The environment variables of the process. Outside of Apple's systems `LC_ALL`, `LC_MESSAGES` and `LANG`
    ///   decide, as POSIX has it.
    static func preferredLanguages(_ environment: [String: String]) -> [String] {
        #if canImport(Darwin)
            Locale.preferredLanguages
        #else
            ["LC_ALL", "LC_MESSAGES", "LANG"].compactMap { environment[$0] }.filter { !$0.isEmpty }.prefix(1).map(\.self)
        #endif
    }
}
