import ArgumentParser
import Foundation
import Tidemark

struct Shares: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Shares records with people, and shows and changes their permissions.",
        discussion: """
            Name a share by a record that it covers, by its zone, or by its number or a unique title in 'share list'. Name a participant \
            by name, address, number or identifier. Changes are made in the cloud at once, so the account has to be signed in; then the \
            container is synchronised once, unless --no-sync is given. The cloud decides permissions: with exit code 77 the command \
            prints the reason and the remedy.

            Examples:
              tidemark share create MyJournal.tidemark senja
              tidemark share invite MyJournal.tidemark senja ben@example.org --read-only
              tidemark share accept BensJournal.tidemark tidemark://share/bPqv…
              tidemark share show MyJournal.tidemark senja
              tidemark share set MyJournal.tidemark senja ben@example.org \\
                  --permission read-write
              tidemark share stop MyJournal.tidemark senja
            """,
        subcommands: [
            ShareCreate.self, ShareList.self, ShareShow.self, ShareInvite.self, ShareAccept.self, ShareDecline.self,
            ShareRemove.self, ShareSet.self, ShareStop.self, ShareLeave.self, ShareLinks.self,
        ])
}

/// The permission that a participant gets, by its name on the command line.
enum GivenPermission: String, ExpressibleByArgument, CaseIterable {
    case none
    case readOnly = "read-only"
    case readWrite = "read-write"

    var permission: ShareParticipant.Permission {
        switch self {
        case .none: .none
        case .readOnly: .readOnly
        case .readWrite: .readWrite
        }
    }
}

/// The role that a participant gets, by its name on the command line.
enum GivenRole: String, ExpressibleByArgument, CaseIterable {
    case administrator
    case privateUser = "private-user"

    var role: ShareParticipant.Role { self == .administrator ? .administrator : .privateUser }
}

extension UserLookUp {
    /// Reads an argument: an address, a phone number that begins with `+`, or a user record name.
    init(argument: String) throws(StoreError) {
        let lookUp: UserLookUp =
            argument.contains("@")
            ? .emailAddress(argument) : argument.hasPrefix("+") ? .phoneNumber(argument) : .userRecordName(argument)
        guard let normalized = lookUp.normalized, argument.contains("@") || argument.hasPrefix("+") || argument.hasPrefix("_")
        else {
            throw StoreError(
                .invalid,
                "nobody can be found by '\(argument)'; give an address, a number such as +47123456, or a user record name, which begins with _"
            )
        }
        self = normalized
    }
}
