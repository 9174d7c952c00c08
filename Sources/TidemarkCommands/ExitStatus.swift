import ArgumentParser
import Foundation
import TidemarkStore
import TidemarkTransfer

/// What the tool exits with, as in sysexits.h.
enum ExitStatus: Int32 {
    case problemsFound = 1
    case usage = 64
    case dataError = 65
    case noInput = 66
    case cannotCreate = 73
    case ioError = 74
    case temporaryFailure = 75
    case interrupted = 130

    init(_ error: StoreError) {
        switch error.code {
        case .notFound: self = .noInput
        case .notAStore, .newerFormat, .cannotCreate: self = .cannotCreate
        case .schema, .sql: self = .usage
        case .busy: self = .temporaryFailure
        case .corrupt: self = .dataError
        default: self = .ioError
        }
    }

    init(_ error: ImportError) {
        switch error.code {
        case .options: self = .usage
        case .source: self = .noInput
        case .manifest, .schemaFile: self = .dataError
        case .output: self = .cannotCreate
        case .store: self = error.cause.map(ExitStatus.init) ?? .ioError
        default: self = .ioError
        }
    }
}

/// Runs a command's work; an error of ours is told in one sentence, and the tool exits with its status.
func reportingErrors(_ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch let error as ImportError {
        throw exit(error.message, .init(error))
    } catch let error as StoreError {
        throw exit(error.message, .init(error))
    } catch is CancellationError {
        throw exit("interrupted; what was committed stays, and --resume goes on from there", .interrupted)
    }
}

private func exit(_ message: String, _ status: ExitStatus) -> ExitCode {
    Output.error("tidemark: \(message)")
    return ExitCode(status.rawValue)
}
