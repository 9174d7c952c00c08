import ArgumentParser

/// `tidemark admin`: the commands for the administrators of a served cloud.
struct Admin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Administers a cloud that is served: containers, accounts, operators, records, tokens, keys, sessions, schemas, backups, secrets, sync errors and the audit log.",
        discussion: """
            The commands work on a cloud's directory, or on its database and bucket, whether or not 'tidemark serve' is running, and take \
            effect at once. They take the options of 'tidemark serve' that say where the cloud is, also from the environment and from its \
            configuration file. Run them as the user who runs the server, because they create files.

            Examples:
              tidemark admin container add journal --data ~/cloud
              tidemark admin account add anna@example.org --data ~/cloud
              tidemark admin token add --container journal --name Web \\
                  --callback https://journal.example.org/signed-in --data ~/cloud
              tidemark admin session list --data ~/cloud
              tidemark admin account list --database postgresql://tidemark@db1/tidemark --assets s3://journal

            Exit codes: 64 a name or a password is invalid; 66 the cloud, account, token, key or session does not exist; 69 the database or the bucket can't be \
            reached or used; 73 it exists \
            already; 75 other processes use the cloud; 77 the files belong to another user.
            """,
        subcommands: [
            AdminContainer.self, AdminAccount.self, AdminOperator.self, AdminRecords.self, AdminZones.self, AdminShares.self,
            AdminLinks.self, AdminPermissions.self,
            AdminUsage.self, AdminToken.self, AdminKey.self, AdminSession.self, AdminSchema.self,
            AdminVerify.self, AdminBackup.self, AdminRestore.self, AdminResync.self, AdminMove.self,
            AdminAudit.self, AdminSyncErrors.self, AdminSecrets.self,
        ])
}
