package import TidemarkModel

/// Decides the outcome of changes that come from the cloud.
///
/// The store reads the facts, asks for a plan and carries it out, all in one transaction. It decides nothing itself. The methods are pure:
/// the same facts give the same plan on every device. They are called record by record, on the thread that writes the store.
package protocol RemoteChangePlanning: Sendable {
    /// The plan for a record whose row is here, by its change tags alone.
    func plan(for row: RemoteChangePlan.KnownRow, tag: String, occasion: ImportOccasion) -> RemoteChangePlan.Row

    /// The plan for a record that was deleted here, if the cloud does not have the deletion yet.
    ///
    /// - Parameter isMove: Whether the deletion belongs to a move to another zone; looked up when it matters.
    func plan(
        for deletion: RemoteChangePlan.KnownDeletion, tag: String, occasion: ImportOccasion, isMove: () throws -> Bool
    ) rethrows -> RemoteChangePlan.Deleted

    /// Whether the record that has come is the deleted one, unchanged since.
    ///
    /// - Parameters:
    ///   - deleted: The change tag of the record that was deleted.
    ///   - tag: The change tag of the record that has come.
    func isDeleted(_ deleted: String?, tag: String, occasion: ImportOccasion) -> Bool

    /// Whether a record of another type keeps its name from a record that has come.
    ///
    /// - Parameter isPending: Whether the local record has changes to send.
    func blocksName(_ isPending: Bool) -> Bool

    /// Whether a record is deleted again that was deleted here by a deletion that the cloud may have lost.
    func deletesAgain(_ edited: EditTimes?, deleted time: Int64) -> Bool

    /// Whether the local version and the cloud's are equal, so that nothing has to be written.
    func isUpToDate(_ values: [FieldValue?], tag: String?, isPending: Bool, with remote: RemoteVersion) -> Bool

    /// Merges local edits with the cloud's version.
    func merge(
        _ local: LocalRecord, with remote: RemoteVersion, as relation: RemoteChangePlan.Relation, in context: RemoteChangeContext
    ) throws -> RemoteChangePlan.Merge

    /// Merges the cloud's copy in a zone that the record has left into the record where it is now.
    func merge(
        copy remote: RemoteVersion, into local: LocalRecord, in context: RemoteChangeContext
    ) throws -> RemoteChangePlan.HomeMerge

    /// Whether the zone in which a copy has come is the record's zone, and not the zone in which it is here.
    func isHome(_ copy: RemoteChangePlan.ZoneCopy, insteadOf local: RemoteChangePlan.ZoneCopy) -> Bool

    /// The plan for a record that was deleted here and edited elsewhere.
    ///
    /// - Parameter ancestor: The record as the cloud had it before the deletion; `nil` when the cloud had nothing.
    func plan(
        forDeleted record: RecordName, fields: [String], ancestor: [FieldValue?]?, edited remote: RemoteVersion
    ) throws -> RemoteChangePlan.Restoration

    /// The plan for a record that was deleted in the cloud, by the facts that are known without its history.
    func plan(forDeletionOf row: RemoteChangePlan.KnownRow) -> RemoteChangePlan.RemoteDeletion

    /// The plan for a record that was deleted in the cloud and edited here.
    func plan(forDeletionOf local: LocalRecord) throws -> RemoteChangePlan.EditedDeletion

    /// The policy under which records with equal unique keys become one.
    func uniqueKeyPolicy(_ type: String) -> MergePolicy
}

/// The plans for records that have come from the cloud, as a ``RemoteChangePlanning`` has decided.
package enum RemoteChangePlan {
    /// The facts about a row that are known without its values.
    package struct KnownRow: Hashable, Sendable {
        /// The change tag of the cloud's record; `nil` when the cloud has none.
        package let tag: String?
        /// Whether the record has changes to send.
        package let isPending: Bool
        /// Whether every record is compared with the cloud's, since the cloud was put back to an earlier state.
        package let comparesAll: Bool
        /// Whether the cloud has never had the record in this zone: it was made here, or moved here from another zone.
        package let isNew: Bool
        /// Whether the row lacks a value of the version that it has, since the store had no field for it when that version came.
        package let lacksValues: Bool

        package init(
            tag: String?, isPending: Bool, comparesAll: Bool = false, isNew: Bool = false, lacksValues: Bool = false
        ) {
            (self.tag, self.isPending, self.comparesAll, self.isNew) = (tag, isPending, comparesAll, isNew)
            self.lacksValues = lacksValues
        }
    }

    /// The plan for a record whose row is here.
    package enum Row: Hashable, Sendable {
        /// The row is the cloud's version already.
        case skip
        /// The cloud's version replaces the row.
        case write
        /// A newer version is looked up.
        case lookUp
        /// Both versions are compared, value by value.
        case compare
        /// Edits made here are merged with the cloud's version.
        case merge
    }

    /// The facts about a deletion that waits to be sent.
    package struct KnownDeletion: Hashable, Sendable {
        /// The change tag of the record that was deleted.
        package let tag: String?
        /// Whether the record that was deleted has the type of the one that has come.
        package let isOfType: Bool
        /// Whether a name may be in another zone.
        package let mayMove: Bool

        package init(tag: String?, isOfType: Bool, mayMove: Bool) {
            (self.tag, self.isOfType, self.mayMove) = (tag, isOfType, mayMove)
        }
    }

    /// The plan for a record that was deleted here.
    package enum Deleted: Hashable, Sendable {
        /// The record stays deleted, and nothing is noted.
        case keep
        /// A newer version is looked up: the one that has come was deferred, and the deletion is of a later one.
        case lookUp
        /// The record is here again, and its deletion is not sent.
        case restore
        /// The record was edited elsewhere: the policy decides.
        case merge
    }

    /// How the local version belongs to the cloud's.
    package enum Relation: Hashable, Sendable {
        /// The local version was made from an earlier version of this record.
        case edit
        /// Each version may have edits that the other lacks: the cloud's comes from another zone, or from a cloud that was put back.
        ///
        /// - Parameter isEdited: Whether the local copy had edits to be sent.
        case copy(isEdited: Bool)
    }

    /// The outcome of merging local edits with the cloud's version.
    package enum Merge {
        case write(Merged)
        /// The policy leaves the conflict to a person.
        case unresolved(fields: [String])
    }

    /// A merged version, as its differences from the cloud's.
    package struct Merged {
        /// The fields that differ from the cloud's version, with their values.
        package let edits: [FieldMerge.Edit]
        /// The fields with equal values whose local time is later: only the time is sent.
        package let renewals: [Int]
        /// The times of the row afterwards.
        package let edited: RowTimes
        package let conflicts: [MergeConflict]

        package init(edits: [FieldMerge.Edit], renewals: [Int], edited: RowTimes, conflicts: [MergeConflict]) {
            (self.edits, self.renewals, self.edited, self.conflicts) = (edits, renewals, edited, conflicts)
        }
    }

    /// The outcome of merging a copy into the record in its own zone.
    package enum HomeMerge {
        /// The fields whose values change there, the times of the row, and the conflicts.
        case write(changes: [FieldMerge.Edit], edited: RowTimes, conflicts: [MergeConflict])
        case unresolved
    }

    /// A zone of a record, with the time of its move.
    package struct ZoneCopy: Hashable, Sendable {
        package let isDefaultZone: Bool
        /// The zone's name; `nil` when the store does not have the zone.
        package let zone: String?
        /// When the record was moved there.
        package let moved: EditTime?

        package init(isDefaultZone: Bool, zone: String?, moved: EditTime?) {
            (self.isDefaultZone, self.zone, self.moved) = (isDefaultZone, zone, moved)
        }
    }

    /// The plan for a record that was deleted here and edited elsewhere.
    package enum Restoration: Hashable, Sendable {
        case restore([MergeConflict])
        /// The cloud's present version is deleted.
        case deleteAgain([MergeConflict])
        case unresolved
    }

    /// The plan for a record that was deleted in the cloud.
    package enum RemoteDeletion: Hashable, Sendable {
        /// The record stays, and is no conflict any more.
        case endConflict
        case delete
        /// The record was edited here: the policy decides.
        case merge
    }

    /// The plan for a record that was deleted in the cloud and edited here.
    package enum EditedDeletion: Hashable, Sendable {
        case delete([MergeConflict])
        /// The record is sent as a new one.
        case sendAgain([MergeConflict])
        case unresolved
    }
}

/// A record of the store, as a merge needs it. Values are in the order of the type's fields.
package struct LocalRecord: Sendable {
    package let type: String
    package let name: String
    package let fields: [String]
    package let values: [FieldValue?]
    /// Whether each field has an edit that the cloud does not have.
    package let isPending: [Bool]
    /// The change tag of the cloud's record; `nil` when the cloud has none.
    package let tag: String?
    /// The times in the row; `nil` where it has none.
    package let stored: RowTimes?
    /// When the fields were edited, with the edits that the row's times do not have yet.
    package let times: EditTimes
    /// The version that both sides began with; `nil` when the cloud had none.
    package let ancestor: [FieldValue?]?

    package init(
        type: String, name: String, fields: [String], values: [FieldValue?], isPending: [Bool], tag: String?, stored: RowTimes?,
        times: EditTimes, ancestor: [FieldValue?]?
    ) {
        (self.type, self.name, self.fields, self.values, self.isPending) = (type, name, fields, values, isPending)
        (self.tag, self.stored, self.times, self.ancestor) = (tag, stored, times, ancestor)
    }
}

/// The cloud's version of a record. Values are in the order of the type's fields.
package struct RemoteVersion: Sendable {
    package let tag: String
    package let values: [FieldValue?]
    /// When the fields were edited; `nil` where the cloud does not have that.
    package let edited: EditTimes?
    /// Whether the record has only values that the type here can hold.
    package let isWhole: Bool

    package init(tag: String, values: [FieldValue?], edited: EditTimes?, isWhole: Bool = true) {
        (self.tag, self.values, self.edited, self.isWhole) = (tag, values, edited, isWhole)
    }
}

/// The facts about the transaction that carries out a plan.
package struct RemoteChangeContext: Hashable, Sendable {
    /// The identifier of this device, as times of edits have it.
    package let device: String
    /// The time of the transaction, in microseconds since 1970 UTC. No edit counts as later than five minutes after it.
    package let time: Int64
    /// Whether a name may be in another zone.
    package let mayMove: Bool

    package init(device: String, time: Int64, mayMove: Bool) { (self.device, self.time, self.mayMove) = (device, time, mayMove) }
}
