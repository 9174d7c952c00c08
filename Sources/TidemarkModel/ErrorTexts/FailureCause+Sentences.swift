extension FailureCause {
    /// The cause as a sentence; `nil` in English, where the reason of the failure says more.
    package func sentence(in language: ErrorLanguage) -> String? {
        switch language {
        case .english: nil
        case .german:
            switch self {
            case .offline: "Die Cloud ist nicht erreichbar."
            case .cloudIsBusy: "Die Cloud ist zurzeit überlastet oder wird gewartet."
            case .signedOut: "Es ist kein Account angemeldet."
            case .switchedOff: "Der Account ist für diese Daten ausgeschaltet."
            case .accountUnavailable: "Der Account ist vorübergehend nicht verfügbar."
            case .accountRestricted: "Der Account darf hier nicht verwendet werden."
            case .undecided: "Es ist noch nicht entschieden, was mit den vorhandenen Datensätzen geschehen soll."
            case .anotherSyncer: "Ein anderes Programm synchronisiert diese Daten."
            case .duplicateRequest: "Die Daten werden bereits synchronisiert."
            case .quotaExceeded: "Der Speicherplatz des Accounts ist voll."
            case .notPermitted: "Der Account hat dafür keine Berechtigung."
            }
        }
    }
}
