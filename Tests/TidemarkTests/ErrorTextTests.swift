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
    private func texts(_ error: any Error) -> [String?] {
        [error.localizedDescription, (error as? any LocalizedError)?.recoverySuggestion]
    }

    @Test func `every error has its text, and its remedy if it has one`() {
        #expect(texts(ValidationError("a destination needs a caption")) == ["a destination needs a caption", nil])
        #expect(texts(StoreError(.invalid, "the limit can't be -1")) == ["the limit can't be -1", nil])
        #expect(texts(StoreError(.busy, "another process writes")) == ["another process writes", "Try again later."])
        #expect(texts(StoreError(.diskFull, "no space")) == ["no space", "Delete files, then try again."])
        let decision = ShareDecision(operation: .update, rule: .readOnly)
        let denied = PermissionDenied(record: RecordName(type: "Destination", name: "senja"), decision: decision)
        #expect(texts(denied) == [denied.description, "Ask the owner for the permission Read-Write."])
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
