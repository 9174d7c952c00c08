#include "journal.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_RECORD = 1, STREAM_OTHER_CAPTION = 2, STREAM_FOLDER = 3 };

typedef struct word {
    const char *text;
    uint8_t bytes, characters;
} word;

/// An ASCII word, and one whose characters are not all of one byte.
#define A(text) {text, sizeof(text) - 1, sizeof(text) - 1}
#define U(text, characters) {text, sizeof(text) - 1, characters}

static const word words[] = {
    A("the"), A("a"), A("we"), A("of"), A("and"), A("to"), A("in"), A("from"), A("at"), A("over"), A("under"), A("behind"),
    A("morning"), A("evening"), A("noon"), A("light"), A("rain"), A("wind"), A("fog"), A("snow"), A("harbour"), A("bridge"),
    A("station"), A("ferry"), A("tram"), A("market"), A("square"), A("tower"), A("castle"), A("cathedral"), A("museum"),
    A("garden"), A("valley"), A("ridge"), A("summit"), A("glacier"), A("waterfall"), A("lake"), A("river"), A("island"),
    A("beach"), A("cliff"), A("lighthouse"), A("village"), A("vineyard"), A("orchard"), A("forest"), A("meadow"), A("path"),
    A("road"), A("pass"), A("hut"), A("bakery"), A("coffee"), A("bread"), A("soup"), A("cheese"), A("wine"), A("walked"),
    A("climbed"), A("crossed"), A("waited"), A("watched"), A("found"), A("missed"), A("followed"), A("arrived"), A("returned"),
    A("slept"), A("swam"), A("narrow"), A("steep"), A("quiet"), A("crowded"), A("golden"), A("frozen"), A("ancient"),
    A("wooden"), A("painted"), A("forgotten"), A("hours"), A("minutes"), A("later"), A("again"), A("slowly"), A("together"),
    A("because"), A("although"), A("until"), A("before"), A("after"), A("without"), A("which"), A("where"), A("nobody"),
    A("everyone"), A("first"), A("last"), A("second"), A("northern"), A("southern"), A("western"), A("photograph"),
    A("notebook"), A("postcard"), A("ticket"), A("luggage"), A("window"), A("balcony"), A("stairs"), A("kilometres"),
    A("unforgettable"), A("neighbourhood"), A("2,300 m"), A("No. 7"), A("it's"), U("café", 4), U("Zürich", 6),
    U("São Paulo", 9), U("Ærøskøbing", 10), U("Kraków", 6), U("piñata", 6), U("naïve", 5), U("—", 1), U("北京", 2), U("東京駅", 3),
    U("Αθήνα", 5), U("Владивосток", 11), U("🏔", 1), U("12 °C", 5),
};

journal_random journal_random_make(uint64_t seed, uint32_t stream, uint64_t index) {
    journal_random random = {seed * 0xd1342543de82ef95u + stream * 0xaef17502108ef2d9u};
    random.state = journal_random_next(&random) ^ (index * 0x9fb21c651e98df25u);
    random.state = journal_random_next(&random);
    return random;
}

uint64_t journal_random_next(journal_random *random) {
    uint64_t mixed = (random->state += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

uint64_t journal_random_below(journal_random *random, uint64_t bound) {
    return (uint64_t)(((unsigned __int128)journal_random_next(random) * bound) >> 64);
}

/// Appends the first `characters` characters of a word and returns the end.
static char *append_characters(char *end, const word *word, uint32_t characters) {
    for (const char *byte = word->text; *byte != 0; byte++) {
        if (((unsigned char)*byte & 0xc0) != 0x80 && characters-- == 0) break;
        *end++ = *byte;
    }
    return end;
}

/// Writes exactly `characters` characters of prose and returns its length in bytes.
static uint32_t write_prose(journal_random *random, char *text, uint32_t characters, bool escaped) {
    static const word interjection = U("\n\"Déjà vu\", ", 12);
    const uint64_t word_count = sizeof(words) / sizeof(words[0]);
    char *end = text;
    uint32_t left = characters;
    uint64_t bits = 0;
    for (uint32_t written = 0;; written++) {
        // Four 16-bit draws from each 64-bit one; the bias of the multiplication does not matter to prose.
        if (written % 4 == 0) bits = journal_random_next(random);
        const word *word = &words[((bits & 0xffff) * word_count) >> 16];
        bool sentence_ends = (bits & 0xf) == 0;
        bits >>= 16;
        if (escaped && written % 50 == 5) word = &interjection;
        if (word->characters + 2u > left) {
            end = append_characters(end, word, left);
            left -= word->characters < left ? word->characters : left;
            while (left-- > 0) *end++ = '.';
            break;
        }
        memcpy(end, word->text, word->bytes);
        end += word->bytes;
        left -= word->characters;
        if (sentence_ends) {
            *end++ = bits & 1 ? '.' : ',';
            left--;
        }
        *end++ = ' ';
        left--;
        if (left == 0) break;
    }
    if (end[-1] == ' ' || end[-1] == '\n') end[-1] = '.';
    return (uint32_t)(end - text);
}

static void write_caption(journal_random *random, journal_caption *caption) {
    uint32_t characters = 10 + (uint32_t)journal_random_below(random, JOURNAL_CAPTION_CHARACTERS - 10 + 1);
    caption->length = write_prose(random, caption->bytes, characters, false);
}

void journal_record_make(uint64_t seed, uint64_t index, journal_record *record) {
    const int64_t first_day = 1262304000000, span = INT64_C(15) * 365 * 86400 * 1000;  // 2010 and fifteen years on
    journal_random random = journal_random_make(seed, STREAM_RECORD, index);

    uint64_t halves[2] = {journal_random_next(&random), journal_random_next(&random)};
    memcpy(record->id, halves, sizeof(record->id));
    record->id[6] = (uint8_t)((record->id[6] & 0x0f) | 0x40);
    record->id[8] = (uint8_t)((record->id[8] & 0x3f) | 0x80);

    record->created_at = first_day + (int64_t)journal_random_below(&random, (uint64_t)span);
    record->elevation = (int32_t)journal_random_below(&random, 52807) - 4305;  // Dead Sea to Mont Blanc
    record->rating = 1 + (int32_t)journal_random_below(&random, 5);
    record->escaped = journal_random_below(&random, 20) == 0;
    write_caption(&random, &record->caption);

    // Taking the lower of two draws one time in six brings the mean from 1,100 to 1,050 characters.
    uint64_t length = journal_random_below(&random, 1801);
    if (journal_random_below(&random, 6) == 0) {
        uint64_t other = journal_random_below(&random, 1801);
        if (other < length) length = other;
    }
    record->details_length = write_prose(&random, record->details, 200 + (uint32_t)length, record->escaped);
}

void journal_caption_change(uint64_t seed, uint64_t index, const journal_record *record, journal_caption *caption) {
    journal_random random = journal_random_make(seed, STREAM_OTHER_CAPTION, index);
    do {
        write_caption(&random, caption);
    } while (caption->length == record->caption.length && memcmp(caption->bytes, record->caption.bytes, caption->length) == 0);
}

int64_t journal_picture_of(uint64_t index, uint64_t records, uint64_t pictures) {
    uint64_t before = (uint64_t)((unsigned __int128)index * pictures / records);
    uint64_t after = (uint64_t)((unsigned __int128)(index + 1) * pictures / records);
    return after > before ? (int64_t)before : -1;
}

void journal_picture_path(uint64_t seed, uint64_t picture, char path[JOURNAL_PATH_BYTES]) {
    journal_random random = journal_random_make(seed, STREAM_FOLDER, picture);
    unsigned folder = (unsigned)journal_random_below(&random, 256);
    snprintf(path, JOURNAL_PATH_BYTES, "pictures/%02x/%04llu.jpg", folder, (unsigned long long)picture);
}
