import Testing

@testable import TidemarkHTTP

/// Goal: a list of sessions names a device's system, whatever its release file contains. Method: such files.
@Suite(.timeLimit(.minutes(30))) struct SystemNameTests {
    @Test(arguments: [
        ("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\n", "Debian GNU/Linux 12"),
        ("NAME='Arch Linux'\nID=arch\n", "Arch Linux"), ("NAME=Fedora\r\nVERSION_ID=41\r\n", "Fedora 41"),
        ("NAME=\"A \\\"b\\\" \\\\ c\"\nVERSION_ID=\"\"", "A \"b\" \\ c"), ("", "Linux"), ("NAME\n=x\nNAME=\"\n", "\""),
        ("\0=\0", "Linux"), ("NAME=\nVERSION_ID=3", "Linux 3"),
    ])
    func `a system has the name from its release file`(file: String, name: String) {
        #expect(SystemName.text(osRelease: file) == name)
    }
}
