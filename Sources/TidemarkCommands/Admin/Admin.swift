import ArgumentParser

/// `tidemark admin`: what the owner of a cloud does that is served.
struct Admin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Administers a cloud that is served: containers, accounts, tokens, keys, sessions, schemas, backups, secrets and the audit log.",
        discussion: """
            All of it works on the cloud's directory, whether 'tidemark serve' runs or not, and takes effect at once. Run it as the user \
            who runs the server: it makes files.

            Examples:
              tidemark admin container add journal --data ~/cloud
              tidemark admin account add anna@example.org --data ~/cloud
              tidemark admin token add --container journal --name Web \\
                  --callback https://journal.example.org/signed-in --data ~/cloud
              tidemark admin session list --data ~/cloud

            Exit codes: 64 a name or a password can't be; 66 there is no such cloud, account, token, key or session; 73 it is there \
            already; 75 others use the cloud; 77 its files are not one's own.
            """,
        subcommands: [
            AdminContainer.self, AdminAccount.self, AdminToken.self, AdminKey.self, AdminSession.self, AdminSchema.self,
            AdminVerify.self, AdminBackup.self, AdminRestore.self,
            AdminAudit.self, AdminSecrets.self,
        ])
}
