#if canImport(Darwin)
    public import Foundation
    public import Synchronization

    /// Watches a container's folder of notifiers with kernel queues: the folder for files that appear, and each file for writes.
    ///
    /// While the folder is missing, the container's folder is watched for its creation.
    ///
    /// `@unchecked Sendable`: the sources are accessed on the queue only.
    final class NotifierWatch: @unchecked Sendable {
        private let queue = DispatchQueue(label: "tidemark.notifier", qos: .userInitiated)
        private let isOnQueue = DispatchSpecificKey<Bool>()
        private let isClosed = Atomic(false)
        private let container: URL
        private let own: StoreChangeNotifier?
        private let heard: @Sendable () -> Void
        private var folders: [any DispatchSourceFileSystemObject] = []
        private var files: [String: any DispatchSourceFileSystemObject] = [:]

        init(
            container: URL, marker: String?, own: StoreChangeNotifier?, heard: @escaping @Sendable () -> Void
        ) throws(StoreError) {
            self.container = container
            self.own = own
            self.heard = heard
            queue.setSpecific(key: isOnQueue, value: true)
            queue.sync { establish() }
        }

        /// Stops without waiting.
        func cancel() {
            isClosed.store(true, ordering: .releasing)
            queue.async { [self] in dropSources() }
        }

        func close() {
            isClosed.store(true, ordering: .releasing)
            if DispatchQueue.getSpecific(key: isOnQueue) == nil { queue.sync { dropSources() } } else { dropSources() }
        }

        private func dropSources() {
            for source in folders { source.cancel() }
            for source in files.values { source.cancel() }
            (folders, files) = ([], [:])
        }

        private func tell() {
            if !isClosed.load(ordering: .acquiring) { heard() }
        }

        /// Watches the folders and files that exist now.
        private func establish() {
            dropSources()
            guard !isClosed.load(ordering: .acquiring) else { return }
            let notifiers = container.appendingPathComponent(StoreChangeNotifier.folderName)
            for folder in [container, notifiers] {
                guard let source = source(folder.path, [.write, .delete, .rename, .revoke]) else { continue }
                source.setEventHandler { [weak self, unowned source] in
                    guard let self else { return }
                    if folder == notifiers, source.data == .write { return listFiles(isNews: true) }
                    if folder == container, source.data == .write, folders.count > 1 { return }
                    establish()
                    tell()
                }
                source.resume()
                folders.append(source)
            }
            listFiles(isNews: false)
        }

        private func listFiles(isNews: Bool) {
            let notifiers = container.appendingPathComponent(StoreChangeNotifier.folderName)
            // A missing folder has no files.
            let names = Set((try? FileManager.default.contentsOfDirectory(atPath: notifiers.path)) ?? [])
            for name in files.keys where !names.contains(name) { files.removeValue(forKey: name)?.cancel() }
            var isHeard = false
            for name in names where files[name] == nil && own?.isOwn(name) != true {
                guard let source = source(notifiers.appendingPathComponent(name).path, [.write, .extend, .delete]) else {
                    continue
                }
                source.setEventHandler { [weak self] in self?.tell() }
                source.resume()
                files[name] = source
                isHeard = true
            }
            // The processes of these files may have posted before the files were watched.
            if isHeard, isNews { tell() }
        }

        private func source(
            _ path: String, _ events: DispatchSource.FileSystemEvent
        ) -> (any DispatchSourceFileSystemObject)? {
            let descriptor = open(path, O_EVTONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            let source = DispatchSource.makeFileSystemObjectSource(fileDescriptor: descriptor, eventMask: events, queue: queue)
            source.setCancelHandler { _ = Foundation.close(descriptor) }
            return source
        }
    }
#endif
