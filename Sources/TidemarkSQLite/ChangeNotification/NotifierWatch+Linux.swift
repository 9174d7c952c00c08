#if os(Linux)
    import Foundation
    import Synchronization

    /// Watches a container's folder of notifiers with inotify.
    ///
    /// The container's folder is watched as well, because the folder of notifiers may appear or disappear. If the container is
    /// gone, the nearest folder above it that exists is watched.
    ///
    /// `@unchecked Sendable`: the watches are accessed in `init`, and afterwards on the queue only.
    final class NotifierWatch: @unchecked Sendable {
        private let queue = DispatchQueue(label: "tidemark.notifier", qos: .userInitiated)
        private let isOnQueue = DispatchSpecificKey<Bool>()
        private let source: any DispatchSourceRead
        private let isClosed = Atomic(false)
        /// The group is left when the source has ended and the descriptor is closed.
        private let ending = DispatchGroup()

        private let descriptor: Int32
        private let container: URL
        /// The name of a file whose replacement means that another container is at the place.
        private let marker: String?
        private let own: StoreChangeNotifier?
        private let heard: @Sendable () -> Void
        private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 14, alignment: 8)

        // The watch descriptors of inotify, -1 for none. inotify does not use a number again.
        private var notifiers: Int32 = -1
        private var parent: Int32 = -1
        /// The name whose creation is awaited in the folder that `parent` watches.
        private var awaited = StoreChangeNotifier.folderName

        private static let folderEvents = UInt32(
            IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF)
        /// `IN_CLOSE_WRITE` is among them because a writer may die between its commit and its notification: the kernel then
        /// closes its file.
        private static let notifierEvents = UInt32(IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF)
        /// The events after which a watch no longer watches the folder at its path.
        private static let endEvents = UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

        init(
            container: URL, marker: String?, own: StoreChangeNotifier?, heard: @escaping @Sendable () -> Void
        ) throws(StoreError) {
            descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
            guard descriptor >= 0 else {
                let reason = String(cString: strerror(errno))
                buffer.deallocate()
                throw StoreError(
                    .io,
                    "cannot listen for changes in \(container.path): \(reason). Close listeners, or raise fs.inotify.max_user_instances"
                )
            }
            self.container = container
            self.marker = marker
            self.own = own
            self.heard = heard
            source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            queue.setSpecific(key: isOnQueue, value: true)
            ending.enter()
            source.setEventHandler { [self] in readEvents() }
            // libdispatch releases both handlers after the cancellation, and this object with them.
            source.setCancelHandler { [descriptor, ending] in
                _ = Foundation.close(descriptor)
                ending.leave()
            }
            do {
                try queue.sync { try establish() }
            } catch {
                source.resume()
                source.cancel()
                throw StoreError(error, doing: "listen for changes in \(container.path)")
            }
            source.resume()
        }

        deinit { buffer.deallocate() }

        /// Stops without waiting.
        func cancel() {
            isClosed.store(true, ordering: .releasing)
            source.cancel()
        }

        func close() {
            cancel()
            if DispatchQueue.getSpecific(key: isOnQueue) == nil { ending.wait() }
        }

        private func tell() {
            if !isClosed.load(ordering: .acquiring) { heard() }
        }

        // MARK: Events

        private struct Events {
            /// Another process has posted, or may have.
            var isHeard = false
            /// A watched folder has been moved or removed.
            var hasMoved = false
            /// The folder of notifiers has appeared.
            var hasAppeared = false
        }

        /// Reads events once. Further events make the source fire again, so a process that posts without a pause does not delay
        /// the call.
        private func readEvents() {
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            guard count > 0 else { return }
            var events = Events()
            var offset = 0
            let headerSize = MemoryLayout<inotify_event>.size
            while offset + headerSize <= count {
                let start = UnsafeRawPointer(buffer.baseAddress! + offset)
                let event = start.loadUnaligned(as: inotify_event.self)
                // The name is filled up with zeros.
                let name = event.len == 0 ? "" : String(cString: (start + headerSize).assumingMemoryBound(to: CChar.self))
                note(event, name: name, in: &events)
                offset += headerSize + Int(event.len)
            }
            react(to: events)
        }

        private func note(_ event: inotify_event, name: String, in events: inout Events) {
            if event.mask & UInt32(IN_Q_OVERFLOW) != 0 {
                events.hasMoved = true
            } else if event.wd == notifiers {
                if event.mask & Self.endEvents != 0 {
                    events.hasMoved = true
                } else if own?.isOwn(name) != true {
                    events.isHeard = true
                }
            } else if event.wd == parent {
                if event.mask & Self.endEvents != 0 {
                    events.hasMoved = true
                } else if name == marker {
                    // The container moves away, or another comes to its place.
                    events.isHeard = true
                } else if name == awaited {
                    let isNew = event.mask & UInt32(IN_CREATE | IN_MOVED_TO) != 0
                    if isNew, notifiers < 0, awaited == StoreChangeNotifier.folderName {
                        events.hasAppeared = true
                    } else {
                        events.hasMoved = true
                    }
                }
            }
        }

        private func react(to events: Events) {
            guard events.hasMoved || events.hasAppeared else {
                if events.isHeard { tell() }
                return
            }
            do {
                try establish()
            } catch {
                // The system lacks a resource. The retries end as soon as a watch exists again.
                queue.asyncAfter(deadline: .now() + 1) { [weak self] in
                    guard let self, !isClosed.load(ordering: .acquiring) else { return }
                    var events = Events()
                    events.hasMoved = true
                    react(to: events)
                }
            }
            if events.hasMoved || events.isHeard || hasOthers() { tell() }
        }

        /// Whether another process has a notifier in the folder of notifiers, which has just appeared. That process may have
        /// posted before the folder was watched.
        private func hasOthers() -> Bool {
            do {
                let folder = try Folder(at: notifierFolder)
                return try folder.entries().contains { own?.isOwn($0.name) != true }
            } catch {
                return true
            }
        }

        private var notifierFolder: URL {
            container.appendingPathComponent(StoreChangeNotifier.folderName, isDirectory: true)
        }

        // MARK: Watches

        /// Watches the folders that exist now.
        private func establish() throws {
            for watch in [notifiers, parent] where watch >= 0 { inotify_rm_watch(descriptor, watch) }
            (notifiers, parent) = (-1, -1)
            // A folder is watched first, and searched for the next one afterwards: so no folder appears unnoticed.
            for _ in 0..<100 {
                let missing = try watchNearest()
                guard let missing else {
                    awaited = StoreChangeNotifier.folderName
                    notifiers = try watch(notifierFolder.path, Self.notifierEvents | UInt32(IN_DONT_FOLLOW)) ?? -1
                    return
                }
                awaited = missing.lastPathComponent
                guard access(missing.path, F_OK) == 0 else { return }
                // It has appeared meanwhile.
                inotify_rm_watch(descriptor, parent)
            }
            throw StoreError(.busy, "\(container.path) comes and goes")
        }

        /// Watches the container's folder, or the nearest folder above it that exists. Returns the first missing folder on the
        /// way from there to the container; `nil` if the container's folder exists.
        private func watchNearest() throws -> URL? {
            var place = container
            var missing: URL?
            while true {
                if let watch = try watch(place.path, Self.folderEvents) {
                    parent = watch
                    return missing
                }
                guard place.path != "/" else { throw Folder.failure("watch", place.path) }
                missing = place
                place = place.deletingLastPathComponent()
            }
        }

        /// Watches a folder, and returns the watch; `nil` when there is no such folder.
        private func watch(_ path: String, _ events: UInt32) throws -> Int32? {
            let watch = inotify_add_watch(descriptor, path, events | UInt32(IN_ONLYDIR))
            if watch >= 0 { return watch }
            switch errno {
            case ENOENT, ENOTDIR: return nil
            case ENOSPC:
                throw StoreError(.io, "the system has no more watches for \(path). Raise fs.inotify.max_user_watches")
            default: throw Folder.failure("watch", path)
            }
        }
    }
#endif
