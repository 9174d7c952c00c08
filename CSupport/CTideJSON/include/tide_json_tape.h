/// A JSON text as a flat run of nodes, for readers that pick out a few members of it.
///
/// It is C, over simdjson, because Foundation's decoder takes ten times as long (Documentation/Decisions/006-dependencies.md), and reports
/// neither duplicate names nor whether a number was written as a whole one. All input is hostile: depth, number of values and duplicate
/// names are checked.
///
/// The children of a container follow its node, each with its own children behind it. `next` of a node is the index behind all of them. A
/// member of an object is a name (a node of the kind TIDE_JSON_NAME) and a value.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma clang assume_nonnull begin

/// The kind of a node.
typedef enum tide_json_kind {
    TIDE_JSON_NULL = 0,
    TIDE_JSON_FALSE = 1,
    TIDE_JSON_TRUE = 2,
    /// A whole number that `int64_t` holds.
    TIDE_JSON_INTEGER = 3,
    TIDE_JSON_NUMBER = 4,
    TIDE_JSON_STRING = 5,
    TIDE_JSON_NAME = 6,
    TIDE_JSON_ARRAY = 7,
    TIDE_JSON_OBJECT = 8,
} tide_json_kind;

/// A value, or the name of a member.
typedef struct tide_json_node {
    union {
        int64_t integer;
        double number;
        /// UTF-8, `length` bytes, not ended by a zero.
        const char *_Nullable text;
    };
    /// Bytes of a text; children of an array; members of an object.
    uint32_t length;
    /// The index behind this node and its children, counted from the first node.
    uint32_t next : 28;
    uint32_t kind : 4;
} tide_json_node;

/// Why a text is refused; TIDE_JSON_SOUND when it is accepted.
typedef enum tide_json_fault {
    TIDE_JSON_SOUND = 0,
    TIDE_JSON_MALFORMED,
    TIDE_JSON_TOO_DEEP,
    TIDE_JSON_TOO_MANY,
    TIDE_JSON_DUPLICATE,
    /// A number that is written wrongly, or a whole one beyond 64 bits.
    TIDE_JSON_BAD_NUMBER,
    TIDE_JSON_NOT_UTF8,
    TIDE_JSON_NO_MEMORY,
} tide_json_fault;

/// The nodes of a text; made by `tide_json_tape_create`.
typedef struct tide_json_tape tide_json_tape;

/// Reads a text.
///
/// - depth: the most containers within each other. values: the most values in all.
/// - tape: on success, a tape that the caller ends with `tide_json_tape_destroy`; it does not refer to `bytes`. For a duplicate name too, with
///   that name as its only node. Else NULL.
///
/// Any thread; a tape may be read by several.
tide_json_fault tide_json_tape_create(
    const char *bytes, size_t count, uint32_t depth, uint32_t values, tide_json_tape *_Nullable *_Nonnull tape);

/// The first node: the text's value. Valid until the tape is destroyed.
const tide_json_node *tide_json_tape_root(const tide_json_tape *tape);

/// Frees a tape and its nodes. NULL does nothing.
void tide_json_tape_destroy(tide_json_tape *_Nullable tape);

#pragma clang assume_nonnull end

#ifdef __cplusplus
}
#endif
