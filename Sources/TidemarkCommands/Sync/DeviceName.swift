import ArgumentParser

/// The option for the name that a server gives the device that signs in to it.
struct DeviceName: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What the account's list of sessions calls this device. The list also has its operating system. (default: its name at the last sign-in, or the host's)",
            valueName: "name"))
    var deviceName: String?

    func validate() throws {
        guard let deviceName, !(1...200).contains(deviceName.utf8.count) else { return }
        throw ValidationError("a device's name has 1 to 200 bytes")
    }

    /// Whether the option is given.
    var isNamed: Bool { deviceName != nil }

    /// The option as it stands on a command line.
    var words: [String] { deviceName.map { ["--device-name=\($0)"] } ?? [] }
}
