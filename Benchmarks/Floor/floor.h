/// What the parts of the program `floor` share, and `core` with it. They are measuring programs: whatever fails ends them with a
/// message.

#ifndef FLOOR_H
#define FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define FLOOR_NORETURN [[noreturn]]
#else
#define FLOOR_NORETURN _Noreturn
#endif

/// Prints a message, with errno's text when `code` is not 0, and ends the program.
FLOOR_NORETURN void floor_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/// Seconds of a clock that only runs forward.
double floor_clock(void);

/// Prints `name seconds rows bytes`.
void floor_report(const char *name, double seconds, uint64_t rows, uint64_t bytes);

void *floor_allocate(size_t bytes);

/// Allocates memory whose pages are already mapped: a first touch costs as much as copying the page.
void *floor_allocate_touched(size_t bytes);

void floor_make_folder(const char *path);

/// Creates the folder and in it 00 to ff.
void floor_make_fan(const char *path);

/// One journal record as the database stores it. The texts belong to whoever made the row.
typedef struct floor_row {
    uint8_t name[16];
    int64_t created_at;
    double elevation;
    int64_t rating;
    const char *caption, *details;
    /// The path of its picture relative to the manifest, NULL for none.
    const char *image;
    uint32_t caption_length, details_length, image_length;
    /// The picture's place in the store: XXH3-128 in canonical byte order, and its size.
    uint8_t asset[16];
    uint64_t asset_size;
} floor_row;

// MARK: - Subcommands

typedef struct floor_options {
    const char *path, *source;
    /// A file with the SQL that makes a store's tables; NULL for none.
    const char *schema;
    uint64_t records, page_size, batch, seed, threads;
    /// MiB of page cache, and of WAL after which a commit is followed by a checkpoint (0 for never before the end).
    uint64_t cache, checkpoint;
    /// Whether each batch is put in order of its names before it is inserted.
    bool sorted;
    /// Whether pictures are written past the page cache.
    bool direct;
} floor_options;

typedef struct floor_subcommand {
    const char *name;
    void (*run)(const floor_options *);
    int paths;
    bool needs_records;
    floor_options defaults;
} floor_subcommand;

/// Reads the command line and runs the subcommand that it names. Returns what `main` returns.
int floor_run(int count, char **arguments, const char *usage, const floor_subcommand *subcommands, size_t subcommand_count);

void floor_insert(const floor_options *options);
void floor_unchanged(const floor_options *options);
void floor_update_one_field(const floor_options *options);
void floor_hash(const floor_options *options);
void floor_intake(const floor_options *options);
void floor_whole(const floor_options *options);
void floor_sync(const floor_options *options);
void floor_places(const floor_options *options);

// MARK: - Records in memory

typedef struct floor_journal {
    floor_row *rows;
    char *texts;
    uint64_t count, bytes;
} floor_journal;

/// Makes the records of the generator in the shape in which the floor stores them; `other_captions` takes the changed captions.
floor_journal floor_journal_make(const floor_options *options, bool other_captions);
void floor_journal_free(floor_journal *journal);

// MARK: - Pictures

typedef struct floor_files {
    char **paths;
    size_t count, capacity;
} floor_files;

/// Lists all files below a folder; an empty one ends the program.
floor_files floor_files_list(const char *folder);
void floor_files_free(floor_files *files);

/// A thread's own buffer for reading files; begins as zeros, grows and is used again.
typedef struct floor_buffer {
    uint8_t *bytes;
    size_t capacity, length;
} floor_buffer;

/// Reads a whole file, `path` being relative to `folder`.
void floor_read_file(int folder, const char *path, floor_buffer *buffer);

/// Stores the buffer's XXH3-128 in canonical byte order.
void floor_hash_buffer(const floor_buffer *buffer, uint8_t hash[16]);

/// Where pictures are taken in: open folders `assets`, with 00 to ff in it, and `staging`.
typedef struct floor_place {
    int assets, staging;
    /// Whether to write past the page cache: less work for the processor, a longer wait for each file.
    bool direct;
} floor_place;

/// Makes `folder` and what a place needs in it.
floor_place floor_place_open(const char *folder, bool direct);
void floor_place_close(const floor_place *place);

/// Writes the buffer to `staging/<number>`, then moves it to `assets/ab/<32 hex digits>-<size>`.
///
/// Where that file is already there its bytes are compared. Nothing is durable before `floor_place_synchronize`.
void floor_take_in(const floor_place *place, uint64_t number, const floor_buffer *buffer, const uint8_t hash[16]);
void floor_place_synchronize(const floor_place *place);

// MARK: - JSON Lines

/// Receives rows; their texts live until it returns.
typedef void (*floor_row_receiver)(void *context, const floor_row *row);

/// Parses a manifest and returns its length in bytes.
uint64_t floor_read_manifest(const char *path, floor_row_receiver receiver, void *context);

#ifdef __cplusplus
}
#endif

#endif
