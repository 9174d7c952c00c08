/// The journal in memory, for programs that measure what comes after reading it.

#include "floor.h"
#include "journal.h"

#include <stdlib.h>
#include <string.h>

floor_journal floor_journal_make(const floor_options *options, bool other_captions) {
    static journal_record record;
    floor_journal made = {.count = options->records, .rows = floor_allocate_touched(options->records * sizeof(floor_row))};
    size_t capacity = 0, length = 0;
    for (uint64_t index = 0; index < made.count; index++) {
        journal_record_make(options->seed, index, &record);
        if (other_captions) {
            journal_caption other;
            journal_caption_change(options->seed, index, &record, &other);
            record.caption = other;
        }
        size_t needed = record.caption.length + record.details_length;
        if (length + needed > capacity) {
            capacity = 2 * (length + needed) + (1 << 20);
            made.texts = realloc(made.texts, capacity);
            if (made.texts == NULL) floor_fail(0, "no memory for %zu bytes", capacity);
        }
        floor_row *row = &made.rows[index];
        *row = (floor_row){.created_at = record.created_at,
                           .elevation = record.elevation / 10.0,
                           .rating = record.rating,
                           .caption_length = record.caption.length,
                           .details_length = record.details_length};
        memcpy(row->name, record.id, sizeof(row->name));
        memcpy(made.texts + length, record.caption.bytes, record.caption.length);
        memcpy(made.texts + length + record.caption.length, record.details, record.details_length);
        length += needed;
    }
    char *next = made.texts;
    for (uint64_t index = 0; index < made.count; index++) {
        floor_row *row = &made.rows[index];
        row->caption = next;
        row->details = next + row->caption_length;
        next += row->caption_length + row->details_length;
        made.bytes += sizeof(row->name) + 3 * 8 + row->caption_length + row->details_length;
    }
    return made;
}

void floor_journal_free(floor_journal *journal) {
    free(journal->rows);
    free(journal->texts);
}
