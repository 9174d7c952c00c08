extension ShareDecision {
    /// The reason of a refusal as a sentence for a person.
    public func sentence(in language: ErrorLanguage) -> String {
        switch language {
        case .english: reason.prefix(1).uppercased() + reason.dropFirst() + "."
        case .german: rule.germanSentence
        }
    }
}

extension ShareDecision.Remedy {
    /// The remedy as a sentence for a person.
    public func sentence(in language: ErrorLanguage) -> String {
        guard language == .german else { return sentence }
        return switch self {
        case .signIn: "Anmelden."
        case .askForInvitation: "Den Eigentümer um eine Einladung bitten."
        case .acceptInvitation: "Die Einladung annehmen."
        case .askForReadWrite: "Den Eigentümer um die Berechtigung „Lesen und Schreiben“ bitten."
        case .askOwner: "Den Eigentümer darum bitten."
        case .askAdministrator: "Den Eigentümer oder einen Administrator darum bitten."
        case .stopSharing: "Zuerst die bestehende Freigabe beenden."
        case .leave: "Stattdessen die Freigabe verlassen."
        }
    }
}

extension SharePolicy.Rule {
    fileprivate var germanSentence: String {
        switch self {
        case .ownRecords: "Der Datensatz gehört dir."
        case .unsavedRecord: "Der Datensatz ist noch in keiner Cloud."
        case .publicIsReadable: "Öffentliche Datensätze dürfen alle lesen."
        case .newPublicRecord: "Jeder angemeldete Account darf öffentliche Datensätze hinzufügen."
        case .ownPublicRecord: "Der Datensatz ist öffentlich und gehört dir."
        case .owner: "Der Eigentümer darf das."
        case .readWrite: "Die Berechtigung ist „Lesen und Schreiben“."
        case .readOnlyReads: "Die Berechtigung ist „Nur Lesen“."
        case .administrator: "Administratoren dürfen das."
        case .ownParticipation: "Es geht um deine eigene Teilnahme."
        case .invited: "Es gibt eine Einladung."
        case .openLink: "Der Link gilt für alle, die ihn haben."
        case .notSignedIn: "Es ist kein Account angemeldet."
        case .stranger: "Das ist nicht mit dieser Person geteilt."
        case .notAccepted: "Die Einladung ist noch nicht angenommen."
        case .removed: "Diese Person wurde aus der Freigabe entfernt."
        case .noPermission: "Die Berechtigung ist „Keine“."
        case .readOnly: "Die Berechtigung ist „Nur Lesen“."
        case .unknownParticipation: "Die Berechtigung der Person ist nicht bekannt."
        case .publicRecordOfAnother: "Der Datensatz ist öffentlich und gehört jemand anderem."
        case .rootIsTheOwners: "Nur der Eigentümer darf den Hauptdatensatz einer Freigabe löschen."
        case .zonesAreTheOwners: "Nur der Eigentümer darf Datensätze aus einer Freigabe nehmen und Zonen anlegen oder löschen."
        case .sharingIsTheOwners: "Nur der Eigentümer darf teilen und die Freigabe beenden."
        case .membersAreManaged: "Nur der Eigentümer und Administratoren verwalten die Teilnehmer."
        case .administratorsAreTheOwners: "Nur der Eigentümer verwaltet die Administratoren."
        case .ownerStays: "Der Eigentümer nimmt immer teil, mit allen Berechtigungen."
        case .notShared: "Das ist nicht geteilt."
        case .alreadyShared: "Der Datensatz gehört schon zu einer Freigabe, und mehr als eine kann er nicht haben."
        case .publicIsNotShared: "Was öffentlich ist, kann nicht mit einzelnen Personen geteilt werden."
        }
    }
}
