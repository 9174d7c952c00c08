import Foundation
import ReaderFuzz

/// The reader that the environment names.
private let reader: FuzzedReader = {
    let name = ProcessInfo.processInfo.environment["READER"] ?? ""
    guard let reader = FuzzedReader(rawValue: name) else {
        fatalError("READER names no reader: it is one of \(FuzzedReader.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return reader
}()

#if FUZZING
    /// What libFuzzer calls with each input.
    @_cdecl("LLVMFuzzerTestOneInput") public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
        reader.read(Array(UnsafeBufferPointer(start: start, count: count)))
        return 0
    }
#else
    /// Reads files, such as those that a fuzzer has left.
    @main struct Program {
        static func main() throws {
            for path in CommandLine.arguments.dropFirst() {
                print(path, reader.result(of: Array(try Data(contentsOf: URL(fileURLWithPath: path)))))
            }
        }
    }
#endif
