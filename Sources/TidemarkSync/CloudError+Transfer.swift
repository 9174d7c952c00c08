import TidemarkCloud
import TidemarkSQLite

extension CloudError {
    /// Wraps an error of a transfer. A failure of the store is no failure of the cloud, and ends the synchronisation.
    init(transfer error: any Error) {
        if let error = error as? CloudError {
            self = error
            return
        }
        let failure = error as? StoreError ?? StoreError(.io, "\(error)")
        self.init(.storeFailure, failure.message)
        localCause = failure
    }

    /// The failure of the local store that the error carries.
    var storeError: StoreError? { localCause as? StoreError }
}

extension CloudError.Code {
    /// The local store has failed. A cloud never returns this code.
    static let storeFailure = CloudError.Code(rawValue: "storeFailure")
}
