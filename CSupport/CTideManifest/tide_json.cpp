#include "tide_json.h"

#include "tide_blob.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <simdjson.h>
#include <string_view>

#include "tide_number.h"
#include "tide_utf8.h"

#include "tide_manifest_layout.h"

using namespace simdjson;

struct tide_json {
    ondemand::parser rows;
    // For values inside a row that were kept as raw text.
    ondemand::parser values;
    /// The memory in which strings of these values are unescaped. simdjson's own is not used: it does not check whether it got it.
    std::unique_ptr<uint8_t[]> unescaped;
    size_t unescaped_capacity = 0;
};

tide_json *tide_json_create(void) { return new (std::nothrow) tide_json; }
void tide_json_destroy(tide_json *json) { delete json; }

bool tide_utf8_is_valid(const char *text, size_t length) { return simdjson::validate_utf8(text, length); }

namespace {

/// At its first use, simdjson chooses its code for the processor, and ends the process if it has no memory for that. This is the first use, as
/// the program starts.
[[maybe_unused]] const bool is_ready = simdjson::validate_utf8("", 0);

constexpr size_t padding = SIMDJSON_PADDING;
static_assert(SIMDJSON_PADDING <= 64, "the batch's arena leaves 64 readable bytes");

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::strchr(" \t\r\n,]}", text.back())) text.remove_suffix(1);
    return text;
}

tide_status refuse(error_code code, tide_error *error) {
    switch (code) {
    case MEMALLOC: return tide_out_of_memory(error);
    case UTF8_ERROR:
        return tide_error_reject(
            error, TIDE_REJECT_INVALID_UTF8, "the row is not valid UTF-8; --encoding names another encoding");
    case DEPTH_ERROR: return tide_error_reject(error, TIDE_REJECT_TOO_DEEP, "the row is nested too deeply");
    case CAPACITY: return tide_error_reject(error, TIDE_REJECT_TOO_LONG, "the row is too long");
    case EMPTY: return tide_error_reject(error, TIDE_REJECT_MALFORMED, "the row is empty");
    case STRING_ERROR:
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a string has an escape that stands for no character");
    case UNESCAPED_CHARS:
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a string has a control character that is not escaped");
    case UNCLOSED_STRING: return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a string is not closed");
    default: return tide_error_reject(error, TIDE_REJECT_MALFORMED, "the row is not valid JSON");
    }
}

/// Refuses a text with more values than a row may have. simdjson has an index of all of a text's values and marks, which would need many times the
/// text's own memory.
tide_status values_check(std::string_view text, tide_error *error) {
    constexpr size_t value_limit = 1'000'000;
    if (text.size() <= value_limit) return TIDE_OK;
    size_t count = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size() && count <= value_limit; i++) {
        char c = text[i];
        if (in_string && c == '\\') {
            i++;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string) {
            count += c == ',' || c == ':' || c == '[' || c == '{';
        }
    }
    if (count <= value_limit) return TIDE_OK;
    return tide_error_reject(
        error, TIDE_REJECT_TOO_LONG, "the row has more than 1,000,000 values; divide it among several records");
}

tide_status refuse_number(std::string_view token, tide_error *error) {
    token = trimmed(token);
    int shown = token.size() < 60 ? static_cast<int>(token.size()) : 60;
    if (!tide_number_is_valid(token.data(), token.size())) {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "'%.*s' is not valid JSON", shown, token.data());
    }
    return tide_error_reject(
        error, TIDE_REJECT_OUT_OF_RANGE, "the number %.*s is beyond what 64 bits hold", shown, token.data());
}

/// Finds the text of a string in the arena: in place if it has no escape, else unescaped at the arena's end.
tide_status string_span(
    const tide_json *json, tide_batch *batch, ondemand::raw_json_string raw, uint32_t *offset, uint32_t *length, tide_error *error
) {
    const char *text = raw.raw();
    size_t count = 0;
    while (text[count] != '"' && text[count] != '\\') {
        // Long strings: look for the quote first, then for an escape before it.
        const char *quote = static_cast<const char *>(std::memchr(text + count, '"', 1 << 24));
        if (!quote) return refuse(UNCLOSED_STRING, error);
        const char *escape = static_cast<const char *>(std::memchr(text + count, '\\', static_cast<size_t>(quote - text) - count));
        count = static_cast<size_t>((escape ? escape : quote) - text);
    }
    if (text[count] == '"') {
        *offset = static_cast<uint32_t>(text - tide_batch_text(batch, 0));
        *length = static_cast<uint32_t>(count);
        return TIDE_OK;
    }
    char *room = tide_batch_text_reserve(batch, 0);
    auto *out = reinterpret_cast<uint8_t *>(room);
    std::string_view unescaped;
    error_code code = json->rows.unescape(raw, out).get(unescaped);
    if (code) return refuse(code, error);
    if (std::memchr(unescaped.data(), 0, unescaped.size())) {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a string holds the character NUL, which cannot be stored");
    }
    tide_span span = tide_batch_text_commit(batch, unescaped.size());
    *offset = span.offset;
    *length = span.length;
    return TIDE_OK;
}

tide_status number_cell(ondemand::value &value, tide_cell *cell, tide_error *error) {
    ondemand::number number;
    std::string_view token = value.raw_json_token();
    if (value.get_number().get(number)) return refuse_number(token, error);
    if (number.is_int64()) {
        cell->kind = TIDE_KIND_INTEGER;
        cell->integer = number.get_int64();
        return TIDE_OK;
    }
    if (number.is_uint64()) return refuse_number(token, error);
    cell->kind = TIDE_KIND_REAL;
    cell->real = number.get_double();
    // SQLite keeps no negative zero.
    if (cell->real == 0) cell->real = 0;
    return TIDE_OK;
}

tide_status raw_cell(tide_batch *batch, std::string_view raw, tide_kind kind, tide_cell *cell) {
    cell->kind = static_cast<uint8_t>(kind);
    cell->offset = static_cast<uint64_t>(raw.data() - tide_batch_text(batch, 0));
    cell->length = static_cast<uint32_t>(raw.size());
    return TIDE_OK;
}

tide_status value_cell(const tide_json *json, tide_batch *batch, ondemand::value &value, tide_cell *cell, tide_error *error) {
    *cell = tide_cell{};
    ondemand::json_type type;
    if (error_code code = value.type().get(type)) return refuse(code, error);
    switch (type) {
    case ondemand::json_type::string: {
        ondemand::raw_json_string raw;
        if (error_code code = value.get_raw_json_string().get(raw)) return refuse(code, error);
        uint32_t offset = 0;
        tide_status status = string_span(json, batch, raw, &offset, &cell->length, error);
        cell->kind = TIDE_KIND_TEXT;
        cell->offset = offset;
        return status;
    }
    case ondemand::json_type::number: return number_cell(value, cell, error);
    case ondemand::json_type::boolean: {
        bool flag = false;
        if (error_code code = value.get_bool().get(flag)) return refuse(code, error);
        cell->kind = TIDE_KIND_BOOLEAN;
        cell->integer = flag;
        return TIDE_OK;
    }
    case ondemand::json_type::null: {
        // simdjson takes anything that begins with 'n' for null.
        std::string_view token = trimmed(value.raw_json_token());
        if (token != "null") return refuse(N_ATOM_ERROR, error);
        if (error_code code = value.is_null().error()) return refuse(code, error);
        cell->kind = TIDE_KIND_NULL;
        return TIDE_OK;
    }
    case ondemand::json_type::array: {
        ondemand::array array;
        std::string_view raw;
        if (error_code code = value.get_array().get(array)) return refuse(code, error);
        if (error_code code = array.raw_json().get(raw)) return refuse(code, error);
        return raw_cell(batch, raw, TIDE_KIND_RAW_LIST, cell);
    }
    case ondemand::json_type::object: {
        ondemand::object object;
        std::string_view raw;
        if (error_code code = value.get_object().get(object)) return refuse(code, error);
        if (error_code code = object.raw_json().get(raw)) return refuse(code, error);
        return raw_cell(batch, raw, TIDE_KIND_RAW_OBJECT, cell);
    }
    }
    return refuse(TAPE_ERROR, error);
}

/// The part of a reader's state that concerns one row.
struct row_reader {
    tide_json *json;
    tide_manifest *manifest;
    tide_batch *batch;
    uint32_t row;
    bool has_name;
    // The field that a refusal names. It points into the arena, at `stored`, at `path` or at static text.
    const char *field;
    size_t field_length;
    // A field's name within nested objects: `a.b` in the source, `a_b` in the store.
    char path[256], stored[256];
};

tide_status name_take(row_reader *reader, ondemand::value &value, tide_error *error) {
    tide_cell cell;
    tide_status status = value_cell(reader->json, reader->batch, value, &cell, error);
    if (status) return status;
    char number[24];
    const char *name;
    size_t length;
    switch (cell.kind) {
    case TIDE_KIND_TEXT:
        name = tide_batch_text(reader->batch, cell.offset);
        length = cell.length;
        break;
    case TIDE_KIND_INTEGER:
        length = static_cast<size_t>(std::snprintf(number, sizeof number, "%lld", static_cast<long long>(cell.integer)));
        name = number;
        break;
    case TIDE_KIND_NULL: return tide_error_reject(error, TIDE_REJECT_MISSING_NAME, "the record name is null");
    default:
        return tide_error_reject(error, TIDE_REJECT_BAD_NAME, "the record name is neither a string nor an integer");
    }
    if (reader->has_name) return tide_error_reject(error, TIDE_REJECT_DUPLICATE_KEY, "the field occurs twice in the row");
    reader->has_name = true;
    return tide_row_name(reader->manifest, reader->batch, reader->row, name, length, error);
}

/// Says why a field can have no column, and what helps.
tide_status refuse_column(const char *name, size_t length, tide_error *error) {
    // The name is valid: the batch has refused the column, and has said why.
    if (tide_identifier_is_valid(name, length)) return TIDE_REJECTED;
    if (length == 0) {
        return tide_error_reject(error, TIDE_REJECT_BAD_IDENTIFIER, "a field has an empty name; give it one in the source");
    }
    return tide_error_reject(
        error, TIDE_REJECT_BAD_IDENTIFIER, "'%.*s' cannot name a field: %s; give it another name with --map",
        static_cast<int>(length < 100 ? length : 100), name, tide_identifier_fault(name, length));
}

/// The type of the column of that name as far as it is known; -1 where it is not.
int known_type(const row_reader *reader, const char *name, size_t length) {
    for (uint32_t i = 0; i < reader->manifest->shape_count; i++) {
        const tide_shape_field *field = &reader->manifest->shape[i];
        if (field->length == length && std::memcmp(field->name, name, length) == 0) return static_cast<int>(field->type);
    }
    return -1;
}

/// Whether an object is a location: it has latitude and longitude, and only numbers. Goes back to the object's beginning.
error_code tell_location(ondemand::object &object, bool *is_location) {
    bool has_latitude = false, has_longitude = false, has_others = false;
    for (auto item : object) {
        ondemand::field field;
        ondemand::json_type type;
        if (error_code code = std::move(item).get(field)) return code;
        has_latitude = has_latitude || field.key().unsafe_is_equal("latitude");
        has_longitude = has_longitude || field.key().unsafe_is_equal("longitude");
        if (error_code code = field.value().type().get(type)) return code;
        has_others = has_others || type != ondemand::json_type::number;
    }
    *is_location = has_latitude && has_longitude && !has_others;
    bool has_members;
    return object.reset().get(has_members);
}

/// Whether a list's text has a list or an object in it.
bool list_is_nested(std::string_view raw) {
    bool in_string = false;
    for (size_t i = 1; i < raw.size(); i++) {
        char c = raw[i];
        if (in_string && c == '\\') {
            i++;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == '{' || c == '[')) {
            return true;
        }
    }
    return false;
}

/// Opens a value that was kept as raw text; its row was valid UTF-8.
tide_status value_open(
    tide_json *json, const char *text, size_t length, ondemand::document &document, tide_error *error
) {
    if (tide_status status = values_check({text, length}, error)) return status;
    if (length + padding > json->unescaped_capacity) {
        json->unescaped.reset(new (std::nothrow) uint8_t[length + padding]);
        json->unescaped_capacity = json->unescaped ? length + padding : 0;
        if (!json->unescaped) return tide_out_of_memory(error);
    }
    error_code code = json->values.iterate(padded_string_view(text, length, length + padding)).get(document);
    return code ? refuse(code, error) : TIDE_OK;
}

/// Reads a string of a value that was kept as raw text. The string holds until the next one is read.
tide_status string_read(tide_json *json, ondemand::value &value, std::string_view *string, tide_error *error) {
    ondemand::raw_json_string raw;
    uint8_t *out = json->unescaped.get();
    if (error_code code = value.get_raw_json_string().get(raw)) return refuse(code, error);
    if (error_code code = json->values.unescape(raw, out).get(*string)) return refuse(code, error);
    return TIDE_OK;
}

/// Refuses text that follows a value.
tide_status value_close(ondemand::document &document, tide_error *error) {
    const char *rest;
    if (document.current_location().get(rest) != SUCCESS) return TIDE_OK;
    return tide_error_reject(error, TIDE_REJECT_MALFORMED, "there is text after the value");
}

/// Checks the syntax of a value within a text that is kept, `depth` levels below the text. simdjson has matched its brackets, and no more. A number
/// may be beyond 64 bits.
tide_status syntax_check(tide_json *json, ondemand::value value, int depth, tide_error *error) {
    enum { depth_limit = 256 };
    ondemand::json_type type;
    std::string_view string;
    // simdjson has no limit of its own here.
    if (depth > depth_limit) return refuse(DEPTH_ERROR, error);
    if (error_code code = value.type().get(type)) return refuse(code, error);
    switch (type) {
    case ondemand::json_type::array: {
        ondemand::array array;
        if (error_code code = value.get_array().get(array)) return refuse(code, error);
        for (auto item : array) {
            ondemand::value element;
            if (error_code code = std::move(item).get(element)) return refuse(code, error);
            if (tide_status status = syntax_check(json, element, depth + 1, error)) return status;
        }
        return TIDE_OK;
    }
    case ondemand::json_type::object: {
        ondemand::object object;
        if (error_code code = value.get_object().get(object)) return refuse(code, error);
        for (auto item : object) {
            ondemand::field field;
            uint8_t *out = json->unescaped.get();
            if (error_code code = std::move(item).get(field)) return refuse(code, error);
            if (error_code code = json->values.unescape(field.key(), out).get(string)) return refuse(code, error);
            if (tide_status status = syntax_check(json, field.value(), depth + 1, error)) return status;
        }
        return TIDE_OK;
    }
    case ondemand::json_type::string: return string_read(json, value, &string, error);
    case ondemand::json_type::number:
        string = trimmed(value.raw_json_token());
        return tide_number_is_valid(string.data(), string.size()) ? TIDE_OK : refuse_number(string, error);
    default:
        string = trimmed(value.raw_json_token());
        return string == "true" || string == "false" || string == "null" ? TIDE_OK : refuse(TAPE_ERROR, error);
    }
}

/// The JSON text of a value as a string, without white space.
tide_status text_cell(tide_json *json, tide_batch *batch, std::string_view raw, tide_cell *cell, tide_error *error) {
    ondemand::document document;
    ondemand::value value;
    if (tide_status status = value_open(json, raw.data(), raw.size(), document, error)) return status;
    if (error_code code = document.get_value().get(value)) return refuse(code, error);
    if (tide_status status = syntax_check(json, value, 0, error)) return status;
    // The row has reserved room for it: the result is no longer than the row's text.
    char *room = tide_batch_text_reserve(batch, 0);
    size_t length = 0;
    if (error_code code = simdjson::minify(raw.data(), raw.size(), room, length)) return refuse(code, error);
    tide_span span = tide_batch_text_commit(batch, length);
    *cell = tide_cell{};
    cell->kind = TIDE_KIND_TEXT;
    cell->offset = span.offset;
    cell->length = span.length;
    return TIDE_OK;
}

tide_status nested_take(row_reader *reader, ondemand::object &object, size_t path_length, int depth, tide_error *error);

/// Gives the value of the source's field `source` to the column `name`.
tide_status value_take(
    row_reader *reader, std::string_view source, const char *name, size_t length, ondemand::value value, int depth,
    tide_error *error
) {
    tide_manifest *manifest = reader->manifest;
    tide_cell cell;
    tide_status status;
    ondemand::json_type type = ondemand::json_type::null;
    if (manifest->nesting != TIDE_NESTING_REFUSE) {
        if (error_code code = value.type().get(type)) return refuse(code, error);
    }
    if (type == ondemand::json_type::object && known_type(reader, name, length) != TIDE_TYPE_LOCATION) {
        ondemand::object object;
        bool is_location = false;
        if (error_code code = value.get_object().get(object)) return refuse(code, error);
        if (error_code code = tell_location(object, &is_location)) return refuse(code, error);
        if (!is_location && manifest->nesting == TIDE_NESTING_FLATTEN) {
            if (source.data() != reader->path) {
                if (source.size() >= sizeof reader->path) return refuse_column(source.data(), source.size(), error);
                std::memcpy(reader->path, source.data(), source.size());
            }
            return nested_take(reader, object, source.size(), depth + 1, error);
        }
        std::string_view raw;
        if (error_code code = object.raw_json().get(raw)) return refuse(code, error);
        status = is_location ? raw_cell(reader->batch, raw, TIDE_KIND_RAW_OBJECT, &cell)
                             : text_cell(reader->json, reader->batch, raw, &cell, error);
    } else {
        status = value_cell(reader->json, reader->batch, value, &cell, error);
        if (!status && type == ondemand::json_type::array) {
            std::string_view raw(tide_batch_text(reader->batch, cell.offset), cell.length);
            if (list_is_nested(raw)) status = text_cell(reader->json, reader->batch, raw, &cell, error);
        }
    }
    if (status) return status;
    uint32_t column;
    status = tide_batch_source_column(reader->batch, name, length, reader->manifest->name_field, &column, error);
    if (status) {
        return status == TIDE_REJECTED ? refuse_column(name, length, error) : status;
    }
    tide_manifest_note_field(reader->manifest, column);
    status = tide_batch_row_set(reader->batch, column, cell);
    if (status == TIDE_REJECTED) {
        return tide_error_reject(error, TIDE_REJECT_DUPLICATE_KEY, "the field occurs twice in the row");
    }
    return status ? tide_out_of_memory(error) : TIDE_OK;
}

/// Takes a field whose name in the source is `source`.
tide_status named_take(row_reader *reader, std::string_view source, ondemand::value value, int depth, tide_error *error) {
    const char *name = source.data();
    size_t length = source.size();
    tide_manifest_rename(reader->manifest, &name, &length);
    if (depth > 0 && name == source.data()) {
        for (size_t i = 0; i < length; i++) reader->stored[i] = name[i] == '.' ? '_' : name[i];
        name = reader->stored;
    }
    reader->field = name;
    reader->field_length = length;
    if (length == reader->manifest->name_field_length && std::memcmp(name, reader->manifest->name_field, length) == 0) {
        return name_take(reader, value, error);
    }
    return value_take(reader, source, name, length, value, depth, error);
}

tide_status field_take(row_reader *reader, ondemand::field &field, tide_error *error) {
    uint32_t offset, length;
    tide_status status = string_span(reader->json, reader->batch, field.key(), &offset, &length, error);
    if (status) return status;
    return named_take(reader, {tide_batch_text(reader->batch, offset), length}, field.value(), 0, error);
}

/// Takes the members of an object as fields of the row. The object's name is the first `path_length` bytes of the path.
tide_status nested_take(row_reader *reader, ondemand::object &object, size_t path_length, int depth, tide_error *error) {
    enum { depth_limit = 32 };
    if (depth > depth_limit) return tide_error_reject(error, TIDE_REJECT_TOO_DEEP, "the row is nested too deeply");
    for (auto item : object) {
        ondemand::field field;
        uint32_t offset, length;
        // A refusal names the object until the member's name is known.
        reader->field = reader->path;
        reader->field_length = path_length;
        if (error_code code = std::move(item).get(field)) return refuse(code, error);
        if (tide_status status = string_span(reader->json, reader->batch, field.key(), &offset, &length, error)) return status;
        size_t whole = path_length + 1 + length;
        if (whole >= sizeof reader->path) {
            return tide_error_reject(
                error, TIDE_REJECT_BAD_IDENTIFIER, "the name of a field with that of its object is longer than 255 bytes");
        }
        reader->path[path_length] = '.';
        std::memcpy(reader->path + path_length + 1, tide_batch_text(reader->batch, offset), length);
        if (tide_status status = named_take(reader, {reader->path, whole}, field.value(), depth, error)) return status;
    }
    return TIDE_OK;
}

tide_status object_take(row_reader *reader, tide_span source, tide_error *error) {
    const char *text = tide_batch_text(reader->batch, source.offset);
    ondemand::document document;
    padded_string_view view(text, source.length, source.length + padding);
    if (tide_status status = values_check(view, error)) return status;
    if (error_code code = reader->json->rows.iterate(view).get(document)) return refuse(code, error);
    ondemand::object object;
    error_code code = document.get_object().get(object);
    if (code == INCORRECT_TYPE) {
        return tide_error_reject(error, TIDE_REJECT_NOT_AN_OBJECT, "the row is not a JSON object");
    }
    if (code) return refuse(code, error);
    for (auto item : object) {
        ondemand::field field;
        reader->field_length = 0;
        if ((code = std::move(item).get(field))) return refuse(code, error);
        if (tide_status status = field_take(reader, field, error)) return status;
    }
    reader->field_length = 0;
    const char *rest;
    if (document.current_location().get(rest) == SUCCESS) {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "the row goes on after its object");
    }
    if (!reader->has_name && reader->manifest->name_is_required) {
        reader->field = reader->manifest->name_field;
        reader->field_length = reader->manifest->name_field_length;
        return tide_error_reject(error, TIDE_REJECT_MISSING_NAME, "the row has no record name");
    }
    return TIDE_OK;
}

tide_status list_open(
    tide_json *json, const char *text, size_t length, ondemand::document &document, ondemand::array &array, tide_error *error
) {
    if (tide_status status = value_open(json, text, length, document, error)) return status;
    error_code code = document.get_array().get(array);
    if (code == INCORRECT_TYPE) return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the value is not a list");
    return code ? refuse(code, error) : TIDE_OK;
}

tide_status refuse_element(const char *expected, tide_error *error) {
    return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the list has an element that is no %s", expected);
}

/// Appends a number with the fewest digits, at least 15, that read back as the same value.
void append_real(tide_text *out, double value) {
    char text[TIDE_NUMBER_SIZE];
    size_t length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        double again;
        length = tide_number_print(value, digits, text);
        if (tide_number_parse(text, length, &again) && again == value) break;
    }
    tide_text_append(out, text, length);
}

tide_status append_string(
    std::string_view string, tide_type element, tide_value_rules *rules, tide_text *out, tide_kind *kind, tide_error *error
) {
    if (std::memchr(string.data(), 0, string.size())) {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a string holds the character NUL, which cannot be stored");
    }
    if (element == TIDE_TYPE_TIMESTAMP) {
        int64_t time;
        bool is_local;
        if (!tide_time_read(string.data(), string.size(), rules->times, &time, &is_local)) return refuse_element("time", error);
        rules->has_local_times = rules->has_local_times || is_local;
        tide_text_format(out, "%lld", static_cast<long long>(time));
    } else if (element == TIDE_TYPE_ASSET && string.substr(0, 6) == "asset:") {
        if (!tide_blob_id_is_valid(string.data() + 6, string.size() - 6)) return refuse_element("asset identifier", error);
        *kind = TIDE_KIND_CLAIM;
        tide_text_json_string(out, string.data() + 6, string.size() - 6);
    } else if (element == TIDE_TYPE_ASSET) {
        if (string.empty()) return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "the list has an empty path");
        *kind = TIDE_KIND_PATHS;
        tide_text_append(out, string.data(), string.size());
        tide_text_append(out, "", 1);
    } else if (element == TIDE_TYPE_REFERENCE) {
        tide_text whole = {};
        // An empty name gets no type before it, so that it is refused.
        if (!string.empty() && rules->target && tide_name_qualify(rules->target, string.data(), string.size(), &whole)) {
            string = {whole.bytes, whole.length};
        }
        tide_status status = TIDE_OK;
        if (string.empty() || string.size() > 255) {
            status = tide_error_reject(error, TIDE_REJECT_BAD_NAME, "a reference is a record name of 1 to 255 bytes");
        } else {
            tide_text_json_string(out, string.data(), string.size());
        }
        if (whole.failed) status = tide_out_of_memory(error);
        tide_text_free(&whole);
        return status;
    } else {
        tide_text_json_string(out, string.data(), string.size());
    }
    return TIDE_OK;
}

tide_status append_element(
    tide_json *json, ondemand::value &value, tide_type element, tide_value_rules *rules, tide_text *out, tide_kind *kind, tide_error *error
) {
    ondemand::json_type type;
    if (error_code code = value.type().get(type)) return refuse(code, error);
    if (type == ondemand::json_type::array || type == ondemand::json_type::object) {
        return tide_error_reject(error, TIDE_REJECT_TOO_DEEP, "a list holds strings, numbers or times, no lists or objects");
    }
    bool wants_number = element == TIDE_TYPE_INT64 || element == TIDE_TYPE_DOUBLE;
    if (wants_number && type == ondemand::json_type::number) {
        tide_cell cell = {};
        if (tide_status status = number_cell(value, &cell, error)) return status;
        if (element == TIDE_TYPE_INT64) {
            if (cell.kind == TIDE_KIND_REAL) {
                if (cell.real != std::floor(cell.real) || std::fabs(cell.real) > 9007199254740992.0) {
                    return refuse_element("integer", error);
                }
                cell.integer = static_cast<int64_t>(cell.real);
            }
            tide_text_format(out, "%lld", static_cast<long long>(cell.integer));
            return TIDE_OK;
        }
        if (cell.kind == TIDE_KIND_INTEGER) {
            auto real = static_cast<double>(cell.integer);
            if (std::fabs(real) >= 9223372036854775808.0 || static_cast<int64_t>(real) != cell.integer) {
                return refuse_element("number that a double holds", error);
            }
            cell.real = real;
        }
        append_real(out, cell.real);
        return TIDE_OK;
    }
    if (element == TIDE_TYPE_INT64 && type == ondemand::json_type::boolean) {
        bool flag = false;
        if (error_code code = value.get_bool().get(flag)) return refuse(code, error);
        tide_text_append(out, flag ? "1" : "0", 1);
        return TIDE_OK;
    }
    if (wants_number || type != ondemand::json_type::string || element == TIDE_TYPE_LOCATION || element == TIDE_TYPE_BYTES) {
        return refuse_element(
            element == TIDE_TYPE_INT64      ? "integer"
            : element == TIDE_TYPE_DOUBLE   ? "number"
            : element == TIDE_TYPE_LOCATION ? "value that a list of locations can be read from"
            : element == TIDE_TYPE_BYTES    ? "value that a list of bytes can be read from"
                                            : "string",
            error);
    }
    std::string_view string;
    if (tide_status status = string_read(json, value, &string, error)) return status;
    return append_string(string, element, rules, out, kind, error);
}

} // namespace

tide_status tide_json_read_row(
    tide_json *json, tide_manifest *manifest, tide_batch *batch, uint64_t line, tide_span source, tide_error *error
) {
    // Not `= {}`: the path would be cleared for each row.
    row_reader reader;
    reader.json = json;
    reader.manifest = manifest;
    reader.batch = batch;
    reader.has_name = false;
    reader.field = "";
    reader.field_length = 0;
    if (tide_batch_row_add(batch, line, source, &reader.row)) return tide_out_of_memory(error);
    tide_error reason;
    tide_status status = object_take(&reader, source, &reason);
    if (status == TIDE_OK) return TIDE_OK;
    return tide_row_refuse(batch, reader.row, reader.field, reader.field_length, &reason, error);
}

tide_status tide_json_summarize_list(
    tide_json *json, const char *text, size_t length, const tide_time_rules *times, tide_list_summary *summary,
    tide_error *error
) {
    ondemand::document document;
    ondemand::array array;
    *summary = tide_list_summary{};
    summary->strings_are_times = true;
    if (tide_status status = list_open(json, text, length, document, array, error)) return status;
    for (auto item : array) {
        ondemand::value value;
        ondemand::json_type type;
        if (error_code code = std::move(item).get(value)) return refuse(code, error);
        if (error_code code = value.type().get(type)) return refuse(code, error);
        if (type == ondemand::json_type::string) {
            std::string_view string;
            int64_t time;
            if (tide_status status = string_read(json, value, &string, error)) return status;
            summary->has_strings = true;
            bool is_local;
            summary->strings_are_times =
                summary->strings_are_times && tide_time_read(string.data(), string.size(), times, &time, &is_local);
        } else if (type == ondemand::json_type::number) {
            tide_cell cell = {};
            if (tide_status status = number_cell(value, &cell, error)) return status;
            (cell.kind == TIDE_KIND_INTEGER ? summary->has_integers : summary->has_reals) = true;
        } else if (type == ondemand::json_type::boolean) {
            bool flag;
            if (error_code code = value.get_bool().get(flag)) return refuse(code, error);
            summary->has_integers = true;
        } else {
            return tide_error_reject(
                error, TIDE_REJECT_TOO_DEEP, "a list may hold strings, numbers or times, no lists, objects or nulls");
        }
    }
    return TIDE_OK;
}

tide_status tide_json_convert_list(
    tide_json *json, const char *text, size_t length, tide_type element, tide_value_rules *rules, tide_text *out,
    tide_kind *kind, tide_error *error
) {
    ondemand::document document;
    ondemand::array array;
    *kind = TIDE_KIND_TEXT;
    if (tide_status status = list_open(json, text, length, document, array, error)) return status;
    tide_text items = {};
    tide_status status = TIDE_OK;
    bool is_first = true;
    for (auto item : array) {
        ondemand::value value;
        if (error_code code = std::move(item).get(value)) {
            status = refuse(code, error);
            break;
        }
        tide_kind before = *kind;
        if (!is_first && before != TIDE_KIND_PATHS) tide_text_append(&items, ",", 1);
        if ((status = append_element(json, value, element, rules, &items, kind, error))) break;
        if (!is_first && before != *kind) {
            status = tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the list mixes paths and asset identifiers");
            break;
        }
        is_first = false;
    }
    if (!status) status = value_close(document, error);
    if (!status) {
        bool is_array = *kind != TIDE_KIND_PATHS;
        if (is_array) tide_text_append(out, "[", 1);
        tide_text_append(out, items.bytes, items.length);
        if (is_array) tide_text_append(out, "]", 1);
        if (items.failed || out->failed) status = tide_out_of_memory(error);
    }
    tide_text_free(&items);
    return status;
}

tide_status tide_json_convert_location(tide_json *json, const char *text, size_t length, tide_text *out, tide_error *error) {
    static const char *const members[] = {
        "latitude", "longitude", "altitude", "horizontalAccuracy", "verticalAccuracy", "course", "speed"};
    constexpr size_t member_count = sizeof members / sizeof *members;
    double values[member_count];
    bool present[member_count] = {};
    ondemand::document document;
    ondemand::object object;
    if (tide_status status = value_open(json, text, length, document, error)) return status;
    if (document.get_object().get(object)) {
        return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the value is no location {\"latitude\": …, \"longitude\": …}");
    }
    for (auto item : object) {
        ondemand::field field;
        if (error_code code = std::move(item).get(field)) return refuse(code, error);
        size_t found = member_count;
        for (size_t i = 0; i < member_count; i++) {
            if (field.key().unsafe_is_equal(members[i])) found = i;
        }
        if (found == member_count) {
            return tide_error_reject(
                error, TIDE_REJECT_WRONG_TYPE,
                "a nested object can only be a location {\"latitude\": …, \"longitude\": …}; --nested flatten or --nested json "
                "imports others");
        }
        if (present[found]) return tide_error_reject(error, TIDE_REJECT_DUPLICATE_KEY, "the location gives %s twice", members[found]);
        if (field.value().get_double().get(values[found])) {
            return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the location's %s is not a number", members[found]);
        }
        present[found] = true;
    }
    if (tide_status status = value_close(document, error)) return status;
    if (!present[0] || !present[1]) {
        return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "a location needs latitude and longitude");
    }
    if (std::fabs(values[0]) > 90 || std::fabs(values[1]) > 180) {
        char latitude[TIDE_NUMBER_SIZE], longitude[TIDE_NUMBER_SIZE];
        tide_number_print(values[0], 6, latitude);
        tide_number_print(values[1], 6, longitude);
        return tide_error_reject(
            error, TIDE_REJECT_OUT_OF_RANGE, "the position %s, %s is not on Earth", latitude, longitude);
    }
    tide_text_append(out, "{", 1);
    for (size_t i = 0; i < member_count; i++) {
        if (!present[i]) continue;
        tide_text_format(out, "%s\"%s\":", i ? "," : "", members[i]);
        append_real(out, values[i] == 0 ? 0 : values[i]);
    }
    tide_text_append(out, "}", 1);
    return out->failed ? tide_out_of_memory(error) : TIDE_OK;
}
