package import Synchronization

/// A value that threads access one at a time, like `Mutex`, whose lock is taken and released out of line.
///
/// On Linux, `Mutex` reads the thread's number from a thread-local variable. In a release build of Swift 6.3, an asynchronous
/// function into which ``withLock(_:)`` is inlined may take that variable's address before an `await` and use it afterwards on
/// another thread. The process then traps ("Call to unlock Mutex on a thread which hasn't acquired the lock"). A function that is
/// not inlined takes the address again at each call.
package struct LockedValue<Value: ~Copyable>: ~Copyable {
    @usableFromInline let mutex: Mutex<Value>

    package init(_ initial: consuming sending Value) { mutex = Mutex(initial) }

    /// Calls `body` with the value, while no other thread accesses it.
    ///
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    @inlinable @inline(never)
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock(body)
    }
}

extension LockedValue: Sendable where Value: ~Copyable {}
