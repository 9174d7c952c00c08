import Foundation
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: `localizedDescription` has the error message, and `recoverySuggestion` the remedy, for an alert.
/// Method: each public error, as `any Error`.
@Suite(.timeLimit(.minutes(30))) struct ErrorTextTests {
    private static let trip = RecordName(type: "Trip", name: "norway")
    private static let booking = RecordName(type: "Booking", name: "room")

    private func texts(_ error: any Error) -> [String?] {
        [error.localizedDescription, (error as? any LocalizedError)?.recoverySuggestion]
    }

    @Test func `errors have German texts if that is the language, and the English message as the reason`() {
        ErrorLanguage.$override.withValue(.german) {
            #expect(
                texts(StoreError(.diskFull, "no space")) == [
                    "Der Speicherplatz ist voll.", "Dateien löschen, dann erneut versuchen.",
                ])
            #expect(StoreError(.diskFull, "no space").failureReason == "no space")
            #expect(texts(StoreError(.invalid, "the limit can't be -1")) == ["the limit can't be -1", nil])
            #expect(texts(ValidationError("a destination needs a caption"))[0] == "a destination needs a caption")
            #expect(
                texts(CloudError(.notAuthenticated, "the session has ended", remedy: .signIn)) == [
                    "Die Anmeldung gilt nicht, oder es ist kein Account angemeldet.", "Erneut anmelden.",
                ])
            #expect(texts(CloudError(.secondFactorRequired, "give a code"))[0]?.contains("zweiten Faktors") == true)
            let decision = ShareDecision(operation: .update, rule: .readOnly)
            let denied = PermissionDenied(record: RecordName(type: "Destination", name: "senja"), decision: decision)
            #expect(
                texts(denied) == [
                    "Die Berechtigung ist „Nur Lesen“.",
                    "Den Eigentümer um die Berechtigung „Lesen und Schreiben“ bitten.",
                ])
            #expect(denied.failureReason?.hasPrefix("update of Destination senja is not allowed") == true)
            #expect(texts(CloudError(decision))[0] == "Die Berechtigung ist „Nur Lesen“.")
            let booked = DeletionDenied(
                refusals: [.init(record: Self.trip, reason: .isReferredTo(by: Self.booking, field: "trip"))])
            #expect(
                texts(booked) == [
                    "Es wurde nichts gelöscht, weil andere Datensätze darauf verweisen.",
                    "Zuerst die Datensätze löschen, die darauf verweisen, oder sie auf einen anderen verweisen lassen.",
                ])
            #expect(booked.failureReason == booked.description)
            let refused = DeletionDenied(refusals: [.init(record: Self.trip, reason: .notPermitted(decision))])
            #expect(texts(refused) == texts(denied))
            var plan = SchemaChangePlan()
            plan.note(.init(record: Self.trip, field: "rating", value: "good", reason: "it is no number"))
            let unconverted = SchemaChangeRefused(plan)
            #expect(texts(unconverted)[0]?.hasPrefix("Einige Werte lassen sich nicht") == true)
            #expect(unconverted.failureReason == unconverted.description)
            for cause in FailureCause.allCases {
                let failure = ContainerEvent.Failure(code: SyncErrorCode.noAccount, reason: "in English", cause: cause)
                #expect(failure.errorDescription?.hasSuffix(".") == true)
                #expect(failure.failureReason == "in English")
            }
            let other = ContainerEvent.Failure(code: SyncErrorCode.other, reason: "in English")
            #expect(other.errorDescription == "in English")
            #expect(other.failureReason == nil)
            // The texts for programs stay as they are.
            #expect(denied.description.hasPrefix("update of Destination senja"))
        }
        #expect(ShareDecision.Remedy.allCases.allSatisfy { $0.sentence(in: .german) != $0.sentence })
        #expect(ErrorRemedy.allCases.allSatisfy { $0.sentence(in: .german) != $0.sentence })
    }

    @Test func `the language is the first known one of the person's preferences`() {
        #expect(ErrorLanguage(preferred: ["de_CH.UTF-8"]) == .german)
        #expect(ErrorLanguage(preferred: ["de-AT", "en"]) == .german)
        #expect(ErrorLanguage(preferred: ["fr", "de"]) == .german)
        #expect(ErrorLanguage(preferred: ["nl_NL"]) == .english)
        #expect(ErrorLanguage(preferred: ["C"]) == .english)
        #expect(ErrorLanguage(preferred: []) == .english)
    }

    @Test func `every error has its text, and its remedy if there is one`() {
        ErrorLanguage.$override.withValue(.english) { checkEnglish() }
    }

    private func checkEnglish() {
        #expect(texts(ValidationError("a destination needs a caption")) == ["a destination needs a caption", nil])
        #expect(texts(StoreError(.invalid, "the limit can't be -1")) == ["the limit can't be -1", nil])
        #expect(texts(StoreError(.busy, "another process writes")) == ["another process writes", "Try again later."])
        #expect(texts(StoreError(.diskFull, "no space")) == ["no space", "Delete files, then try again."])
        let decision = ShareDecision(operation: .update, rule: .readOnly)
        let denied = PermissionDenied(record: RecordName(type: "Destination", name: "senja"), decision: decision)
        #expect(texts(denied) == [denied.description, "Ask the owner for the permission Read-Write."])
        let booked = DeletionDenied(
            refusals: [.init(record: Self.trip, reason: .isReferredTo(by: Self.booking, field: "trip"))])
        #expect(texts(booked)[0] == booked.description && booked.failureReason == nil)
        #expect(texts(booked)[1]?.hasPrefix("Delete the records that refer to it first") == true)
        #expect(texts(CloudError(decision)) == ["the permission is Read-Only", "Ask the owner for the permission Read-Write."])
        #expect(
            texts(CloudError(.notAuthenticated, "the session has ended", remedy: .signIn)) == [
                "the session has ended", "Sign in again.",
            ])
        let failure = ContainerEvent.Failure(code: 1, reason: "the server has no such path", remedy: .checkAddress)
        #expect(texts(failure)[0] == "the server has no such path")
        #expect(texts(failure)[1]?.hasPrefix("Correct the server's address") == true)
        #expect(ErrorRemedy.allCases.allSatisfy { $0.sentence.hasSuffix(".") })
    }
}
