// Goal: rows get the names that Documentation/Formats/manifest.md says, in "Names", and texts of fields become one record.
// Method: small sources, whose names are compared with the expected ones.

#include "manifest_reading.h"

#define LINES .format = TIDE_FORMAT_JSON_LINES

static void test_short_names(void) {
#define TYPED .names_have_type = true
    expect_named("{\"id\":7}\n{\"id\":\"T:7\"}\n{\"id\":\"T:\"}\n{\"id\":\"Tx\"}\n{\"id\":\"00112233-4455-6677-8899-aabbccddeeff\"}\n"
                 "{\"id\":\"00112233-4455-6677-8899-AABBCCDDEEFF\"}\n{\"id\":\"00112233-4455-6677-8899-aabbccddEEFF\"}\n{\"id\":\"\"}\n",
           "types:\n1: 'T:7'\n2: 'T:7'\n3: 'T:T:'\n4: 'T:Tx'\n5: '00112233-4455-6677-8899-aabbccddeeff'\n"
           "6: '00112233-4455-6677-8899-AABBCCDDEEFF'\n7: 'T:00112233-4455-6677-8899-aabbccddEEFF'\n"
           "line 8, id, missingName: the record name is empty <{\"id\":\"\"}>\nthe end\n", TYPED);
    expect_named("id,v\n7,x\nT:8,y\n,z\n\"\",z\n",
           "types: v string\n2: 'T:7' v='x'\n3: 'T:8' v='y'\nline 4, id, missingName: the record name is empty <,z\n>\n"
           "line 5, id, missingName: the record name is empty <\"\",z\n>\nthe end\n", TYPED);
    expect_named("id\n7\n", "types:\n2: '7'\nthe end\n");
    // A name has 1 to 255 bytes, the type included.
    for (size_t length = 252; length <= 256; length++) {
        char text[300] = "id\n";
        memset(text + 3, 'x', length);
        for (int has_type = 0; has_type < 2; has_type++) {
            tide_manifest_options options = {.type_name = "T", .name_field = "id", .names_have_type = has_type};
            reading how = {.options = &options, .has_names = true};
            tide_text found = source_read(source_of(text, strlen(text)), &how);
            const char *expected = length + 2 * (size_t)has_type <= 255 ? "x'\nthe end\n"
                                   : has_type && length <= 255        ? "badName: the record name is longer than 255 bytes with 'T:' before it"
                                                                      : "badName: the record name has 256 bytes; at most 255 are allowed";
            check(strstr(found.bytes, expected) && !strstr(found.bytes, "'T:xx") == !(has_type && length <= 253), "%s", found.bytes);
            tide_text_free(&found);
        }
    }
}

/// The name that a source's only row gets.
static void name_of(const char *text, const tide_manifest_options *options, char name[37]) {
    reading how = {.options = options, .has_names = true};
    tide_text found = source_read(source_of(text, strlen(text)), &how);
    const char *at = strstr(found.bytes, ": '");
    check(at && strlen(at) > 40 && at[39] == '\'', "%s", found.bytes);
    snprintf(name, 37, "%s", at + 3);
    tide_text_free(&found);
}

static void test_derived_names(void) {
    static const tide_known_field fields[] = {{"b", TIDE_TYPE_BYTES, NULL}, {"a", TIDE_TYPE_ASSET, NULL}};
    const tide_manifest_options options = {.type_name = "T", .fields = fields, .field_count = 2}, other = {.type_name = "U"};
    // The name is that of the content, which is written here as the documentation says.
    static const char content[] = "tidemark record name 1\0T\0d\0\x03\0\0\0\0\0\0\xf8?i\0\2\1\0\0\0\0\0\0\0s\0\4\1\0\0\0\0\0\0\0x";
    char derived[37] = {0}, name[37], again[37];
    check(!tide_name_derive(content, sizeof content - 1, derived), "a name");
    name_of("{\"s\":\"x\",\"i\":1,\"d\":1.5,\"n\":null}", &options, name);
    check(!strcmp(name, derived) && name[14] == '8' && strchr("89ab", name[19]), "%s and %s", name, derived);
    // The order of the fields, their source, and what has no value make no difference. The type and each value do.
    name_of("d,s,i,e\n1.5,x,1,\n", &options, again);
    check(!strcmp(name, again), "%s and %s", name, again);
    name_of("{\"s\":\"x\",\"i\":1,\"d\":1.5}", &other, again);
    check(strcmp(name, again), "%s", name);
    static const char *const texts[] = {
        "{\"i\":1}", "{\"i\":2}", "{\"j\":1}", "{\"i\":1.5}", "{\"i\":\"1\"}", "{\"i\":[1]}", "{\"b\":\"AAAA\"}", "{\"a\":\"AAAA\"}", "{}"};
    char names[9][37];
    for (int i = 0; i < 9; i++) {
        name_of(texts[i], &options, names[i]);
        for (int j = 0; j < i; j++) check(strcmp(names[i], names[j]), "%s and %s", texts[i], texts[j]);
    }
}

/// A column can name the rows if each row has a value of its own in it.
static void test_naming_columns(void) {
    static const struct {
        const char *text;
        bool names;
    } cases[] = {
        {"v,w\na,1\nb,1\n", true},  {"v,w\n1,1\n2,1\n", true},  {"v,w\na,1\na,1\n", false}, {"v,w\n1,1\n1,1\n", false}, {"v,w\na,1\n,1\n", false},
        {"v,w\na,1\n\"\",1\n", false}, {"v,w\na,1\n", false},      {"v,w\n", false},          {"v,w\n1.5,1\n2.5,1\n", false},
        {"v,w\na,1\nb\nb,1\n", true},
        {"v,w\nc,1\na,1\nb,1\na,1\n", false}, {"v,w\na,1\nb,1\na,1\nb,1\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int source = source_of(cases[i].text, strlen(cases[i].text));
        tide_manifest *manifest;
        tide_batch *batch;
        uint32_t column;
        check(!tide_manifest_create(source, &(tide_manifest_options){.type_name = "T"}, &manifest, NULL) && !tide_batch_create(10, 1 << 20, &batch),
            "a manifest");
        check(tide_manifest_read(manifest, batch, NULL) == TIDE_END && !tide_batch_column(batch, "v", 1, &column, NULL), "%s", cases[i].text);
        check(tide_batch_column_names_rows(batch, column) == cases[i].names, "%s", cases[i].text);
        tide_batch_destroy(batch);
        tide_manifest_destroy(manifest);
        close(source);
    }
    // A text that is longer than a name names nothing.
    char text[600] = "v\n";
    memset(text + 2, 'x', 256);
    strcpy(text + 258, "\ny\n");
    int source = source_of(text, strlen(text));
    tide_manifest *manifest;
    tide_batch *batch;
    check(!tide_manifest_create(source, &(tide_manifest_options){.type_name = "T"}, &manifest, NULL) && !tide_batch_create(10, 1 << 20, &batch),
        "a manifest");
    check(tide_manifest_read(manifest, batch, NULL) == TIDE_END && !tide_batch_column_names_rows(batch, 0), "a long text");
    tide_batch_destroy(batch);
    tide_manifest_destroy(manifest);
    close(source);
}

static void test_identifiers(void) {
    static const struct {
        const char *name, *fault;
    } cases[] = {
        {"", "it is empty"},
        {"sqlite_x", "it begins with 'sqlite_', which SQLite keeps for itself"},
        {"SQLite_", "it begins with 'sqlite_', which SQLite keeps for itself"},
        {"Tide_x", "it begins with 'tide_', which the store keeps for itself"},
        {"1a", "a name is a letter, then letters, digits or '_'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(!strcmp(tide_identifier_fault(cases[i].name, strlen(cases[i].name)), cases[i].fault), "%s", cases[i].name);
    }
    char name[300];
    memset(name, 'a', sizeof name);
    check(!strcmp(tide_identifier_fault(name, 256), "it is longer than 255 bytes"), "a long name");
}

// Texts

static void expect_texts(int line, const tide_manifest_options *options, const tide_field_text *texts, uint32_t count, const char *expected) {
    tide_batch *batch;
    tide_error error = {0};
    tide_text out = {0};
    check(!tide_batch_create(10, 1 << 20, &batch), "a batch");
    tide_status status = tide_texts_read(options, texts, count, batch, &error);
    if (status) error_write(&out, status, &error);
    else batch_write(&out, batch, false);
    expect_text(__FILE__, line, out.bytes, expected);
    tide_text_free(&out);
    tide_batch_destroy(batch);
}

static void test_texts(void) {
    static const tide_known_field fields[] = {
        {"i", TIDE_TYPE_INT64, NULL}, {"t", TIDE_TYPE_TIMESTAMP, NULL}, {"r", TIDE_TYPE_REFERENCE, "Place"},
        {"l", TIDE_TYPE_STRING | TIDE_TYPE_LIST, NULL}};
    const tide_manifest_options options = {.type_name = "T", .fields = fields, .field_count = 4};
#define TEXTS(expected, ...) \
    expect_texts(__LINE__, &options, (tide_field_text[]){__VA_ARGS__}, sizeof((tide_field_text[]){__VA_ARGS__}) / sizeof(tide_field_text), expected)
    TEXTS("types: i int64, t timestamp, r reference, l list<string>, s string\n1: i=7 t=null r='Place:x' l='[\"a\"]' s='y'\n",
          {"i", "7", 1}, {"t", NULL, 0}, {"r", "x", 1}, {"l", "[\"a\"]", 5}, {"s", "y", 1});
    // Its messages name no options of an import.
    TEXTS("types: i int64, t timestamp, r reference, l list<string>\nline 1, i, wrongType: the value is no integer <>\n", {"i", "1,5", 3});
    TEXTS("types: i int64, t timestamp, r reference, l list<string>\n"
          "line 1, t, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024 <>\n", {"t", "1/5/2024", 8});
    TEXTS("types: i int64, t timestamp, r reference, l list<string>\n"
        "line 1, s, malformed: the value holds the character NUL, which cannot be stored <>\n",
          {"s", "a\0b", 3});
    TEXTS("duplicateKey: the field s is set twice\n", {"s", "a", 1}, {"s", NULL, 0});
    TEXTS("badIdentifier: 'a b' cannot name a field: a letter, then letters, digits or '_'; give it another name with --map\n", {"a b", "a", 1});
}

int main(void) {
    test_short_names();
    test_derived_names();
    test_naming_columns();
    test_identifiers();
    test_texts();
    return tests_end("manifest_naming_test");
}
