import ArgumentParser
import TidemarkModel

/// A number of bytes on the command line, such as 64KiB or 500MB.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = ByteCountText.bytes(argument) else { return nil }
        self.bytes = bytes
    }
}
