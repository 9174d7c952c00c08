import TidemarkModel

extension CloudError.Code {
    /// The kind of error as a sentence; `nil` in English, where the reason says more, and for a code without one.
    func sentence(in language: ErrorLanguage) -> String? {
        switch language {
        case .english: nil
        case .german: Self.german[self]
        }
    }

    /// The sentences of all codes except `invalidArguments`, which is for programmers: its reason is more useful to them.
    static let german: [CloudError.Code: String] = [
        .networkUnavailable: "Die Cloud ist nicht erreichbar.",
        .networkFailure: "Die Verbindung zur Cloud ist abgebrochen.",
        .serviceUnavailable: "Die Cloud kann zurzeit nicht antworten.",
        .requestRateLimited: "Es kommen zu viele Anfragen an die Cloud.",
        .zoneBusy: "Die Cloud ist zurzeit überlastet.",
        .accountTemporarilyUnavailable: "Der Account ist vorübergehend nicht verfügbar.",
        .serverRecordChanged: "Der Datensatz wurde inzwischen geändert.",
        .limitExceeded: "Das ist mehr, als die Cloud auf einmal annimmt.",
        .batchRequestFailed: "Ein anderer Datensatz hat die Übertragung verhindert.",
        .zoneNotFound: "Die Zone ist in der Cloud nicht vorhanden.",
        .userDeletedZone: "Die Daten wurden in der Cloud endgültig gelöscht.",
        .changeTokenExpired: "Die Änderungen seit dem letzten Mal sind der Cloud nicht mehr bekannt.",
        .referenceViolation: "Der Datensatz, auf den verwiesen wird, ist nicht in der Cloud.",
        .assetNotAvailable: "Die Cloud hat den Inhalt der Datei nicht.",
        .quotaExceeded: "Der Speicherplatz des Accounts ist voll.",
        .notAuthenticated: "Die Anmeldung gilt nicht, oder es ist kein Account angemeldet.",
        .secondFactorRequired: "Zur Anmeldung gehört ein gültiger Code des zweiten Faktors.",
        .permissionFailure: "Dafür fehlt die Berechtigung.",
        .alreadyShared: "Der Datensatz gehört schon zu einer Freigabe.",
        .recordDamaged: "Der Datensatz ist in der Cloud beschädigt.",
        .unknownItem: "Das ist in der Cloud nicht vorhanden.",
        .internalError: "In der Cloud ist ein Fehler aufgetreten.",
    ]
}
