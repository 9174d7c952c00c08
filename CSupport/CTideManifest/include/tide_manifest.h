/// Reads manifests (JSON Lines, a JSON array, CSV) into batches of records.
///
/// Rules: Documentation/Formats/manifest.md. Rows that break them are refused one by one, with line and reason, and the rest goes on;
/// memory is bounded by the batch's bounds and one row's limit, whatever the source holds.
/// Reading stops between rows. The position (bytes, lines and the XXH3-128 of everything before) lets a later run go on from there, also
/// on a source that cannot seek, and notice another source.
/// Types: a column gets its type from `fields`, or else from the values of the first batch in which it has any; see "Types" there.
/// Threads: a manifest may be used by one thread at a time. JSON is simdjson's work, SHA-256 is libcrypto's.
///
/// Why C: it turns some 300 MB/s of text into columns without touching a value twice.

#ifndef TIDE_MANIFEST_H
#define TIDE_MANIFEST_H

#include "tide_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// The format of a source.
typedef enum tide_format {
    /// Recognised by the first character that is no white space: '[' begins a JSON array, '{' JSON Lines or objects over several lines,
    /// anything else CSV. A source without such a character counts as JSON Lines.
    TIDE_FORMAT_AUTO = 0,
    TIDE_FORMAT_JSON_LINES = 1,
    /// JSON whose rows may be spread over several lines: an array, objects one after the other, or an object with an array of objects.
    TIDE_FORMAT_JSON_ARRAY = 2,
    TIDE_FORMAT_CSV = 3,
} tide_format;

/// How objects that are no locations, and lists that hold objects or lists, are read.
typedef enum tide_nesting {
    /// The row is refused.
    TIDE_NESTING_REFUSE = 0,
    /// The members of an object become fields: `b` in `a` is the source's field `a.b`, and in the store `a_b`. Lists become JSON texts.
    TIDE_NESTING_FLATTEN = 1,
    /// Such a value becomes a string: its JSON text without white space.
    TIDE_NESTING_JSON = 2,
} tide_nesting;

/// The order of day and month in dates such as 5/1/2024.
typedef enum tide_date_order {
    /// Such dates are not read as times.
    TIDE_DATE_ORDER_NONE = 0,
    TIDE_DATE_ORDER_DAY_FIRST = 1,
    TIDE_DATE_ORDER_MONTH_FIRST = 2,
} tide_date_order;

/// An offset of a time zone, and the moment from which it holds.
typedef struct tide_zone_offset {
    /// Seconds since 1970 UTC. Ignored for the first offset, which holds from the beginning.
    int64_t since;
    /// Seconds east of Greenwich.
    int32_t offset;
} tide_zone_offset;

/// How times without an offset are read.
typedef struct tide_time_rules {
    /// In the order of time; without any, UTC.
    const tide_zone_offset *TIDE_NULLABLE offsets;
    uint32_t offset_count;
    tide_date_order order;
} tide_time_rules;

/// The name of a field in the source and in the store.
typedef struct tide_mapping {
    const char *from;
    const char *to;
} tide_mapping;

/// A field whose type is known.
typedef struct tide_known_field {
    const char *name;
    tide_type type;
    /// For a reference, or a list of references: the type of the records that it refers to. Their short names are completed with it (see
    /// `names_have_type`).
    const char *TIDE_NULLABLE target;
} tide_known_field;

/// Only read during the call that takes it.
typedef struct tide_manifest_options {
    tide_format format;
    /// The record type; part of the names that are derived.
    const char *type_name;
    /// The field (after mapping) that holds the record name; NULL stands for `_name`.
    const char *TIDE_NULLABLE name_field;
    /// Whether a row without a record name is refused; else its name is derived.
    bool name_is_required;
    const tide_mapping *TIDE_NULLABLE mappings;
    uint32_t mapping_count;
    const tide_known_field *TIDE_NULLABLE fields;
    uint32_t field_count;
    /// The number of fields at the end of `fields` that may be lists. Such a field is a list of its type if its first value is a list.
    uint32_t open_field_count;
    /// A row longer than this is refused; 0 stands for 16 MiB.
    uint32_t row_limit;
    /// Whether a name from the name field that is no UUID gets the type and a colon before it, unless it begins so.
    bool names_have_type;
    /// Whether numbers in a CSV have a decimal comma, and may have their digits in groups of three.
    bool decimal_comma;
    /// The delimiter of a CSV; 0 stands for a comma.
    char delimiter;
    tide_nesting nesting;
    tide_time_rules times;
    /// The encoding of the source. NULL: the encoding of its byte order mark, else UTF-8.
    const char *TIDE_NULLABLE encoding;
} tide_manifest_options;

/// A place between two rows of a source, for `tide_manifest_resume`.
typedef struct tide_position {
    /// Bytes of the source before the next row.
    uint64_t offset;
    /// Lines before it.
    uint64_t line;
    /// XXH3-128 of these bytes, canonical byte order.
    uint8_t digest[16];
    /// The reader's state in a JSON array.
    uint8_t state;
} tide_position;

/// An open manifest; made by `tide_manifest_create`.
typedef struct tide_manifest tide_manifest;

/// Begins to read `descriptor` from where it stands; the caller keeps it open meanwhile and closes it after
/// `tide_manifest_destroy`. Reads the beginning to tell the format, and a CSV's header: TIDE_REJECTED when that is unusable.
tide_status tide_manifest_create(
    int descriptor, const tide_manifest_options *options, tide_manifest *TIDE_NULLABLE *_Nonnull manifest,
    tide_error *TIDE_NULLABLE error);
/// Frees a manifest. The descriptor stays open. NULL does nothing.
void tide_manifest_destroy(tide_manifest *TIDE_NULLABLE manifest);

/// The format that was given or, with TIDE_FORMAT_AUTO, recognised.
tide_format tide_manifest_format(const tide_manifest *manifest);

/// Fills an empty batch with the next rows, typed and named. TIDE_END when the source is at its end and the batch is the last (it
/// may hold rows).
tide_status tide_manifest_read(tide_manifest *manifest, tide_batch *batch, tide_error *TIDE_NULLABLE error);

/// The place behind the rows that were read so far.
tide_position tide_manifest_position(const tide_manifest *manifest);

/// Whether the mapping with that index in the options was used so far, in a row or a CSV's header. After `tide_manifest_resume`, rows before
/// the position do not count.
bool tide_manifest_mapping_occurred(const tide_manifest *manifest, uint32_t mapping);
/// As `tide_manifest_mapping_occurred`, for the known field with that index in the options.
bool tide_manifest_field_occurred(const tide_manifest *manifest, uint32_t field);

/// Whether the source is decompressed or converted from another encoding. Then positions count bytes of the resulting text.
bool tide_manifest_is_converted(const tide_manifest *manifest);

/// The name of the `index`th field in which a time without an offset has occurred so far; NULL when there are no more. The manifest owns it.
const char *TIDE_NULLABLE tide_manifest_local_time_field(const tide_manifest *manifest, uint32_t index);

/// Whether each live row of a batch has a value of the column, and no two rows the same value: such a column could name the rows.
bool tide_batch_column_names_rows(const tide_batch *batch, uint32_t column);

/// Goes to a position of an earlier run, before anything was read. TIDE_REJECTED when the source before it has other bytes than in that run.
tide_status tide_manifest_resume(tide_manifest *manifest, const tide_position *position, tide_error *TIDE_NULLABLE error);

/// Says in a few words why a text is no identifier. Static storage.
const char *tide_identifier_fault(const char *name, size_t length);

/// A field of a record, and its value as a text.
typedef struct tide_field_text {
    const char *name;
    /// `length` bytes of UTF-8; NULL stands for no value.
    const char *TIDE_NULLABLE text;
    size_t length;
} tide_field_text;

/// Adds one record to an empty batch. Its values are read as a CSV's cells are. Only the types of fields, and the rules for numbers and
/// times, in `options` count. The row is refused if a field can't hold its value. TIDE_REJECTED when a field is there twice.
tide_status tide_texts_read(
    const tide_manifest_options *options, const tide_field_text *texts, uint32_t count, tide_batch *batch,
    tide_error *TIDE_NULLABLE error);

/// Derives a record name from content: a UUID (version 8) of the first bits of its SHA-256, in lower case, 36 bytes without NUL.
tide_status tide_name_derive(const void *content, size_t length, char name[_Nonnull 36]);

/// Reads an RFC 3339 time (`T`, `t` or a space between date and time; an offset or Z is required) as microseconds since 1970 UTC;
/// further digits are cut off. False when the text is no such time.
bool tide_time_parse(const char *text, size_t length, int64_t *microseconds);

/// Reads an RFC 3339 time or one of the other usual forms; see "Times" in Documentation/Formats/manifest.md. `*is_local` says that the text
/// has no offset, so that the rules' zone was applied. A local time that occurs twice means the first; one that is skipped is read with
/// the offset before. False when the text is no time.
bool tide_time_read(
    const char *text, size_t length, const tide_time_rules *rules, int64_t *microseconds, bool *is_local);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif
