import ArgumentParser

/// `tidemark admin`: what the owner of a cloud does that is served.
struct Admin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Administers a cloud that is served: containers, accounts, tokens, keys, sessions, schemas, backups, secrets and the audit log.",
        discussion: """
            The commands work on the cloud's directory, whether or not 'tidemark serve' is running, and take effect at once. Run them as \
            the user who runs the server, because they create files.

            Examples:
              tidemark admin container add journal --data ~/cloud
              tidemark admin account add anna@example.org --data ~/cloud
              tidemark admin token add --container journal --name Web \\
                  --callback https://journal.example.org/signed-in --data ~/cloud
              tidemark admin session list --data ~/cloud

            Exit codes: 64 a name or a password is invalid; 66 the cloud, account, token, key or session does not exist; 73 it exists \
            already; 75 other processes use the cloud; 77 the files belong to another user.
            """,
        subcommands: [
            AdminContainer.self, AdminAccount.self, AdminToken.self, AdminKey.self, AdminSession.self, AdminSchema.self,
            AdminVerify.self, AdminBackup.self, AdminRestore.self,
            AdminAudit.self, AdminSecrets.self,
        ])
}
