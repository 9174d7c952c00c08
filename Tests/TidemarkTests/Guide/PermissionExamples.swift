import Foundation
import Tidemark
import TidemarkModel
import TidemarkStore

/// The code of the documentation of permissions. Not run.
extension Guide {
    private final class Control {
        var isEnabled = false
        var text: String?
        func reload() {}
    }

    static func showPermissions(_ journal: PersistentContainer, of senja: RecordName) async throws {
        let (deleteButton, explanation, view) = (Control(), Control(), Control())

        let permission = try await journal.permissions.permission(of: senja)
        deleteButton.isEnabled = permission?.canDelete ?? false
        explanation.text = permission?.reason // "the permission is Read-Only; ask the owner for the permission Read-Write"

        for try await permission in journal.permissions.report(only: .readOnly) {
            print(permission.record.name, permission.reason)
        }

        let report = journal.permissions.report(on: Destination.self, where: \.rating >= 4, only: .editable)
        for try await permission in report { print(permission.record.name) }

        for try await _ in try await journal.permissions.changes() { view.reload() }
    }
}
