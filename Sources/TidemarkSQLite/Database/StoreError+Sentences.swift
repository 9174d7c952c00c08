import TidemarkModel

extension StoreError.Code {
    /// The kind of failure as a sentence; `nil` in English, where the message says more, and for a code without one.
    func sentence(in language: ErrorLanguage) -> String? {
        switch language {
        case .english: nil
        case .german: Self.german[self]
        }
    }

    /// The sentences of all codes except `invalid`, `sql` and `invalidName`, which are for programmers: their messages are more
    /// useful to them.
    static let german: [StoreError.Code: String] = [
        .notFound: "Was gesucht wurde, ist nicht vorhanden.",
        .unreadable: "Die Daten dürfen nicht gelesen werden.",
        .notAStore: "Die Datei enthält keine Tidemark-Daten.",
        .newerFormat: "Die Daten wurden mit einer neueren Version geschrieben.",
        .olderFormat: "Die Daten haben ein älteres Format, das diese Version nicht liest.",
        .changed: "Die Daten wurden während des Lesens geändert.",
        .cannotCreate: "Die Daten können an diesem Ort nicht angelegt werden.",
        .io: "Eine Datei kann nicht gelesen oder geschrieben werden.",
        .diskFull: "Der Speicherplatz ist voll.",
        .busy: "Ein anderes Programm schreibt gerade.",
        .corrupt: "Die Daten sind beschädigt.",
        .damaged: "Ein Datensatz ist beschädigt.",
        .schema: "Das Schema der Daten lässt das nicht zu.",
        .historyTokenExpired: "Die Änderungen seit dem letzten Mal sind nicht mehr bekannt.",
        .notDownloaded: "Der Inhalt ist in der Cloud und nicht auf diesem Gerät.",
        .untrusted: "Der Ordner gehört einer anderen Person, oder andere dürfen darin schreiben.",
        .closed: "Die Daten wurden geschlossen.",
        .core: "Die Daten können nicht verwendet werden.",
        .moved: "Die Daten liegen jetzt an einem anderen Ort.",
        .incompleteCopy: "Die Kopie ist nicht vollständig.",
        .cannotMove: "Die Daten können nicht bewegt, gesichert oder wiederhergestellt werden.",
        StoreError.Code(rawValue: "anotherAccount"): "Die Daten gehören einem anderen Account.",
    ]
}

extension StoreError.Recovery {
    /// The recovery as a sentence; `nil` if the message has it, or if nothing helps.
    func sentence(in language: ErrorLanguage) -> String? {
        switch (language, self) {
        case (.english, .retry): "Try again later."
        case (.english, .freeSpace): "Delete files, then try again."
        case (.english, .reset): "Fetch everything again."
        case (.english, .download): "Download the content, then try again."
        case (.german, .retry): "Später erneut versuchen."
        case (.german, .freeSpace): "Dateien löschen, dann erneut versuchen."
        case (.german, .reset): "Alles neu laden."
        case (.german, .download): "Den Inhalt herunterladen, dann erneut versuchen."
        case (_, .askThePerson), (_, .none): nil
        }
    }
}
