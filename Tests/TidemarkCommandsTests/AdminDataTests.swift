import ArgumentParser
import Testing

@testable import TidemarkCommands

/// Goal: a command that a message suggests runs as it is printed. Method: the options that name a cloud, parsed and printed
/// again.
@Suite(.timeLimit(.minutes(30))) struct AdminDataTests {
    @Test func `the options that name a cloud are printed as a shell reads them`() throws {
        for (arguments, words) in [
            (["--data", "/srv/cloud"], " --data /srv/cloud"),
            (["--data", "Anna's cloud", "--config", "server.conf"], " --data 'Anna'\\''s cloud' --config server.conf"),
            (
                ["--database", "postgresql://db/tidemark?sslmode=require", "--assets", "/srv/assets"],
                " --database 'postgresql://db/tidemark?sslmode=require' --assets /srv/assets"
            ),
            (
                [
                    "--database", "host=db dbname=cloud", "--assets", "s3://assets", "--s3-endpoint", "https://s3.example.org",
                    "--s3-region", "eu", "--s3-style", "path", "--database-pooler", "--database-direct", "host=direct",
                ],
                " --database 'host=db dbname=cloud' --assets s3://assets --s3-endpoint https://s3.example.org --s3-region eu --s3-style path"
                    + " --database-direct 'host=direct' --database-pooler"
            ),
        ] as [([String], String)] {
            #expect(try AdminData.parse(arguments).repeated == words)
        }
    }
}
