import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTransfer

/// The tool's exit codes, as in sysexits.h.
enum ExitStatus: Int32 {
    case problemsFound = 1
    case usage = 64
    case dataError = 65
    case noInput = 66
    case unavailable = 69
    case cannotCreate = 73
    case ioError = 74
    case temporaryFailure = 75
    case noPermission = 77
    case interrupted = 130
    /// The exit code that a shell reports for a process that SIGPIPE ended.
    case brokenPipe = 141

    init(_ error: StoreError) {
        switch error.code {
        case .notFound, .unreadable, .moved, .incompleteCopy: self = .noInput
        case .notAStore, .newerFormat, .olderFormat, .cannotCreate, .cannotMove: self = .cannotCreate
        case .schema, .sql, .invalidName, .invalid: self = .usage
        case .historyTokenExpired, .notDownloaded: self = .unavailable
        case .untrusted, .anotherAccount: self = .noPermission
        case .busy, .changed: self = .temporaryFailure
        case .corrupt, .damaged: self = .dataError
        default: self = .ioError
        }
    }

    init(_ error: CredentialError) {
        switch error.code {
        case .invalid: self = .usage
        case .notFound: self = .noInput
        case .exists: self = .cannotCreate
        case .busy: self = .temporaryFailure
        case .untrusted: self = .noPermission
        default: self = error.cause.map(ExitStatus.init) ?? .ioError
        }
    }

    init(_ error: AdministrationError) {
        switch error.cause {
        case let cause as CloudError: self = cause.exitStatus
        case let cause as CredentialError: self.init(cause)
        default:
            switch error.code {
            case .notFound: self = .noInput
            case .forbidden: self = .noPermission
            case .invalid, .missingIndex: self = .usage
            case .exists: self = .cannotCreate
            case .conflict, .damaged: self = .dataError
            case .busy: self = .temporaryFailure
            case .failed: self = .ioError
            }
        }
    }

    init(_ error: ImportError) {
        switch error.code {
        case .options: self = .usage
        case .source: self = .noInput
        case .manifest, .schemaFile: self = .dataError
        case .output: self = .cannotCreate
        case .closed: self = .brokenPipe
        case .store: self = error.cause.map(ExitStatus.init) ?? .ioError
        default: self = .ioError
        }
    }
}

/// Runs a command's work. An error is reported in one sentence, and the tool exits with its status.
func reportingErrors(_ body: () async throws -> Void) async throws {
    do {
        try await StoreReader.$rollsBackJournals.withValue(true) { try await body() }
    } catch let error as ImportError where error.code == .closed {
        // The reader has closed the pipe, as `head` does. That is no failure.
        throw ExitCode(ExitStatus.brokenPipe.rawValue)
    } catch let error as ImportError {
        throw ending(error.message, .init(error))
    } catch let error as StoreError {
        throw ending(error.message, .init(error))
    } catch let failure as ContainerEvent.Failure {
        throw ending("\(failure.code): \(failure.reason)", failure.exitStatus)
    } catch let error as CloudError {
        let remedy = error.denial?.remedy.map { "; \($0.text)" } ?? ""
        throw ending(error.description + remedy + waiting(error), error.exitStatus)
    } catch let error as CredentialError {
        throw ending(error.message, .init(error))
    } catch let error as AdministrationError {
        throw ending(error.message + ((error.cause as? CloudError).map(waiting) ?? ""), .init(error))
    } catch let failure as AdminFailure {
        Output.error("tidemark: \(failure.message)")
        throw ExitCode(failure.status)
    } catch let error as PermissionDenied {
        throw ending(error.description, .noPermission)
    } catch let error as DeletionDenied {
        let remedy = error.recoverySuggestion.map { ". \($0)" } ?? ""
        throw ending(error.description + remedy, .init(error))
    } catch let error as UnresolvedConflicts {
        throw ending(error.description, .dataError)
    } catch let error where !(error is ExitCode) {
        throw ending("\(error)", .ioError)
    }
}

/// The sentence that says when to try again, if the cloud has named a time.
private func waiting(_ error: CloudError) -> String {
    guard let seconds = error.retryAfter?.components.seconds, seconds > 0 else { return "" }
    return "; try again in \(seconds < 120 ? "\(seconds) s" : "\((seconds + 59) / 60) min")"
}

/// Prints why the tool ends, and returns the error that ends it.
func ending(_ message: String, _ status: ExitStatus) -> ExitCode {
    Output.error("tidemark: \(message)")
    return ExitCode(status.rawValue)
}

extension ExitStatus {
    /// The status of a denied deletion: ``noPermission`` if that is the reason of one of its records.
    fileprivate init(_ error: DeletionDenied) {
        let isOfPermission = error.refusals.contains { if case .notPermitted = $0.reason { true } else { false } }
        self = isOfPermission ? .noPermission : .dataError
    }
}
