import ArgumentParser

/// `tidemark schema`: the record types of a container.
struct Schema: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows and changes the record types of a container.",
        discussion: """
            Each change is one transaction: it is made as a whole or not at all. --dry-run prints what a change would do. The commands change \
            the types of the private store; the types of shared records are those of their owners.

            Examples:
              tidemark schema show MyJournal.tidemark > schema.json
              tidemark schema diff MyJournal.tidemark schema.json
              tidemark schema apply MyJournal.tidemark schema.json --dry-run
              tidemark schema rename MyJournal.tidemark --type Destination caption title
              tidemark schema retype MyJournal.tidemark --type Destination rating double
            """,
        subcommands: [
            SchemaShow.self, SchemaDiff.self, SchemaApply.self, SchemaRename.self, SchemaDrop.self, SchemaRetype.self,
        ])
}
