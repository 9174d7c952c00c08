// Makes the names of records, and says what is wrong with names of fields and types.

#include "tide_manifest.h"

#ifdef __APPLE__
#include <CommonCrypto/CommonDigest.h>
#else
#include <openssl/evp.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tide_manifest_layout.h"
#include "tide_text.h"

static bool name_is_whole(const char *prefix, const char *name, size_t length) {
    uint8_t key[17];
    size_t prefix_length = strlen(prefix);
    if (length > prefix_length && memcmp(name, prefix, prefix_length) == 0) return true;
    return length == 36 && tide_name_encode(name, length, key) > 0;
}

tide_status tide_row_name(
    const tide_manifest *manifest, tide_batch *batch, uint32_t row, const char *name, size_t length, tide_error *error
) {
    const char *prefix = manifest->name_prefix;
    if (!prefix || length == 0 || length > 255 || name_is_whole(prefix, name, length)) {
        return tide_batch_row_name(batch, row, name, length, error);
    }
    char whole[512];
    size_t prefix_length = strlen(prefix);
    if (prefix_length + length > 255) {
        return tide_error_reject(
            error, TIDE_REJECT_BAD_NAME, "the record name is longer than 255 bytes with '%.100s' before it", prefix);
    }
    memcpy(whole, prefix, prefix_length);
    memcpy(whole + prefix_length, name, length);
    return tide_batch_row_name(batch, row, whole, prefix_length + length, error);
}

bool tide_name_qualify(const char *prefix, const char *name, size_t length, tide_text *qualified) {
    if (name_is_whole(prefix, name, length)) return false;
    tide_text_append(qualified, prefix, strlen(prefix));
    tide_text_append(qualified, name, length);
    return true;
}

const char *tide_identifier_fault(const char *name, size_t length) {
    if (length == 0) return "it is empty";
    if (length > 255) return "it is longer than 255 bytes";
    if (length >= 7 && strncasecmp(name, "sqlite_", 7) == 0) return "it begins with 'sqlite_', which SQLite keeps for itself";
    if (length >= 5 && strncasecmp(name, "tide_", 5) == 0) return "it begins with 'tide_', which the store keeps for itself";
    return "a name is a letter, then letters, digits or '_'";
}

tide_status tide_name_derive(const void *content, size_t length, char name[36]) {
    uint8_t digest[32];
#ifdef __APPLE__
    CC_SHA256(content, (CC_LONG)length, digest);
#else
    if (EVP_Digest(content, length, digest, NULL, EVP_sha256(), NULL) != 1) return TIDE_NO_MEMORY;
#endif
    digest[6] = (uint8_t)((digest[6] & 0x0f) | 0x80);
    digest[8] = (uint8_t)((digest[8] & 0x3f) | 0x80);
    tide_name_decode(digest, 16, name);
    return TIDE_OK;
}

typedef struct named_column {
    const char *name;
    size_t length;
    uint32_t column;
} named_column;

static int compare_columns(const void *a, const void *b) { return strcmp(((const named_column *)a)->name, ((const named_column *)b)->name); }

static void content_append(tide_text *content, const tide_batch *batch, const named_column *column, tide_cell cell) {
    uint8_t word[8];
    uint64_t bits = cell.kind == TIDE_KIND_INTEGER ? (uint64_t)cell.integer : 0;
    if (cell.kind == TIDE_KIND_REAL) memcpy(&bits, &cell.real, sizeof bits);
    bool is_text = cell.kind != TIDE_KIND_INTEGER && cell.kind != TIDE_KIND_REAL;
    if (is_text) bits = cell.length;
    for (int i = 0; i < 8; i++) word[i] = (uint8_t)(bits >> (8 * i));
    tide_text_append(content, column->name, column->length + 1);
    tide_text_append(content, &cell.kind, 1);
    tide_text_append(content, word, sizeof word);
    if (is_text) tide_text_append(content, tide_batch_text(batch, cell.offset), cell.length);
}

tide_status tide_batch_name_rows(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    static const char prefix[] = "tidemark record name 1";
    uint32_t count = tide_batch_column_count(batch), rows = tide_batch_row_count(batch);
    named_column *columns = calloc(count + 1, sizeof *columns);
    tide_text content = {0};
    if (!columns) return tide_out_of_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        columns[i].column = i;
        columns[i].name = tide_batch_column_name(batch, i, &columns[i].length);
    }
    qsort(columns, count, sizeof *columns, compare_columns);
    tide_status status = TIDE_OK;
    for (uint32_t row = 0; row < rows && !status; row++) {
        size_t length;
        bool is_blob;
        tide_batch_row_key(batch, row, &length, &is_blob);
        if (length > 0 || !tide_batch_row_is_live(batch, row)) continue;
        tide_text_clear(&content);
        tide_text_append(&content, prefix, sizeof prefix);
        tide_text_append(&content, manifest->type_name, strlen(manifest->type_name) + 1);
        for (uint32_t i = 0; i < count; i++) {
            tide_cell cell = tide_batch_cell(batch, row, columns[i].column);
            if (cell.kind > TIDE_KIND_NULL) content_append(&content, batch, &columns[i], cell);
        }
        char name[36];
        if (content.failed || tide_name_derive(content.bytes, content.length, name)) {
            status = tide_out_of_memory(error);
        } else {
            status = tide_batch_row_name(batch, row, name, sizeof name, error);
        }
    }
    tide_text_free(&content);
    free(columns);
    return status;
}
