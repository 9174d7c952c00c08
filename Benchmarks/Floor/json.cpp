/// JSON Lines to rows with simdjson's on-demand parser, in pieces of 1 MiB that end with a line.

#include <simdjson.h>

#include "floor.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using namespace simdjson;

namespace {

constexpr size_t piece_bytes = 1 << 20;

[[noreturn]] void fail(uint64_t line, const char *what) {
    floor_fail(0, "line %llu: %s", static_cast<unsigned long long>(line), what);
}

int hexadecimal(char character) {
    if (character >= '0' && character <= '9') return character - '0';
    if (character >= 'a' && character <= 'f') return character - 'a' + 10;
    if (character >= 'A' && character <= 'F') return character - 'A' + 10;
    return -1;
}

bool parse_uuid(std::string_view text, uint8_t id[16]) {
    if (text.size() != 36) return false;
    size_t from = 0;
    for (int index = 0; index < 16; index++) {
        if (index == 4 || index == 6 || index == 8 || index == 10) {
            if (text[from++] != '-') return false;
        }
        int high = hexadecimal(text[from++]), low = hexadecimal(text[from++]);
        if (high < 0 || low < 0) return false;
        id[index] = static_cast<uint8_t>(high << 4 | low);
    }
    return true;
}

/// Reads 2010-01-31T12:34:56.789Z as milliseconds since 1970.
bool parse_date(std::string_view text, int64_t &milliseconds) {
    if (text.size() != 24) return false;
    static const char pattern[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    int64_t numbers[7] = {0};
    int number = 0;
    for (size_t index = 0; index < 24; index++) {
        if (pattern[index] == 'd') {
            if (text[index] < '0' || text[index] > '9') return false;
            numbers[number] = numbers[number] * 10 + (text[index] - '0');
        } else {
            if (text[index] != pattern[index]) return false;
            number++;
        }
    }
    int64_t year = numbers[0], month = numbers[1], day = numbers[2];
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1] + (leap && month == 2)) return false;
    if (numbers[3] > 23 || numbers[4] > 59 || numbers[5] > 59) return false;
    // Days from a civil date, after Howard Hinnant; no year before 0 can be written.
    if (month <= 2) year--;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    milliseconds = (((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5]) * 1000 + numbers[6];
    return true;
}

template <class Value> Value require(simdjson_result<Value> result, uint64_t line) {
    Value value;
    auto error = std::move(result).get(value);
    if (error) fail(line, error_message(error));
    return value;
}

void parse_row(ondemand::document_reference document, uint64_t line, floor_row &row) {
    enum { name = 1, created = 2, caption = 4, details = 8, rating = 16, elevation = 32, all = 63 };
    int seen = 0;
    row.image = nullptr;
    row.image_length = 0;
    ondemand::object object;
    if (auto error = document.get_object().get(object)) fail(line, error_message(error));
    for (auto field : object) {
        std::string_view key = require(field.unescaped_key(), line);
        ondemand::value value;
        if (auto error = field.value().get(value)) fail(line, error_message(error));
        if (key == "id") {
            if (!parse_uuid(require(value.get_string(), line), row.name)) fail(line, "id is not a UUID");
            seen |= name;
        } else if (key == "createdAt") {
            if (!parse_date(require(value.get_string(), line), row.created_at)) fail(line, "createdAt is not a date");
            seen |= created;
        } else if (key == "caption") {
            std::string_view text = require(value.get_string(), line);
            row.caption = text.data();
            row.caption_length = static_cast<uint32_t>(text.size());
            seen |= caption;
        } else if (key == "details") {
            std::string_view text = require(value.get_string(), line);
            row.details = text.data();
            row.details_length = static_cast<uint32_t>(text.size());
            seen |= details;
        } else if (key == "rating") {
            row.rating = require(value.get_int64(), line);
            seen |= rating;
        } else if (key == "elevation") {
            row.elevation = require(value.get_double(), line);
            seen |= elevation;
        } else if (key == "image") {
            std::string_view text = require(value.get_string(), line);
            row.image = text.data();
            row.image_length = static_cast<uint32_t>(text.size());
        } else {
            fail(line, "an unknown field");
        }
    }
    if (seen != all) fail(line, "a field is missing");
}

/// Parses whole lines; `room` bytes of the buffer are allocated.
void parse_piece(ondemand::parser &parser, const uint8_t *bytes, size_t length, size_t room, uint64_t &line,
                 floor_row_receiver receiver, void *context) {
    ondemand::document_stream documents;
    // The stream refuses a piece that a document does not fit in, so it is given the piece as its window.
    if (auto error = parser.iterate_many(bytes, length, room).get(documents)) fail(line, error_message(error));
    floor_row row{};
    for (auto &&document : documents) {
        line++;
        parse_row(require(std::move(document), line), line, row);
        receiver(context, &row);
    }
    if (documents.truncated_bytes() != 0) fail(line + 1, "an unfinished record");
}

}  // namespace

uint64_t floor_read_manifest(const char *path, floor_row_receiver receiver, void *context) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) floor_fail(errno, "%s", path);
    size_t capacity = piece_bytes, length = 0;
    uint64_t total = 0, line = 0;
    std::unique_ptr<uint8_t[]> bytes(new uint8_t[capacity + SIMDJSON_PADDING]);
    ondemand::parser parser(capacity + SIMDJSON_PADDING);
#ifdef SIMDJSON_THREADS_ENABLED
    // The job is to use two threads, not a third that looks ahead for documents.
    parser.threaded = false;
#endif
    for (;;) {
        if (length == capacity) {
            std::unique_ptr<uint8_t[]> larger(new uint8_t[2 * capacity + SIMDJSON_PADDING]);
            std::memcpy(larger.get(), bytes.get(), length);
            bytes = std::move(larger);
            capacity *= 2;
        }
        ssize_t count = read(file, bytes.get() + length, capacity - length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) floor_fail(errno, "%s", path);
        total += static_cast<size_t>(count);
        length += static_cast<size_t>(count);
        const void *newline = count == 0 ? nullptr : memrchr(bytes.get(), '\n', length);
        size_t whole = count == 0 ? length : newline ? static_cast<const uint8_t *>(newline) - bytes.get() + 1 : 0;
        if (whole > 0) {
            parse_piece(parser, bytes.get(), whole, capacity + SIMDJSON_PADDING, line, receiver, context);
        }
        length -= whole;
        std::memmove(bytes.get(), bytes.get() + whole, length);
        if (count == 0) break;
    }
    close(file);
    return total;
}
