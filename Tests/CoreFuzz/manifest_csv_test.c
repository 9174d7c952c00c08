// Goal: a CSV is read as Documentation/Formats/manifest.md says: each value as the type of its field, each fault with its line, its column, and
// what helps.
// Method: small sources, whose rows and refusals are compared with the expected ones.

#include "manifest_reading.h"

#define CSV .format = TIDE_FORMAT_CSV

static void test_cells(void) {
    expect("a,b\n1,x\n", "types: a int64, b string\n2: a=1 b='x'\nthe end\n");
    // The last row needs no end; a carriage return before a line feed, or the end, belongs to the line end.
    expect("a,b\r\n1,x\r\n2,y", "types: a int64, b string\n2: a=1 b='x'\n3: a=2 b='y'\nthe end\n");
    expect("a,b\n1,x\r", "types: a int64, b string\n2: a=1 b='x'\nthe end\n");
    expect("a,b\n1,\"x\"\r", "types: a int64, b string\n2: a=1 b='x'\nthe end\n");
    expect("a,b\n\"x\"\r,y\n", "types:\nline 2, malformed: there is text after the closing quote of a cell <\"x\"\r,y\n>\nthe end\n");
    expect("a,b\nx\r,y\n", "types: a string, b string\n2: a='x\r' b='y'\nthe end\n");
    expect("a,b\nx,\"\"\n", "types: a string, b string\n2: a='x' b=''\nthe end\n");
    expect("a\n\"x \"\"y\"\",\nz\"\n", "types: a string\n2: a='x \"y\",\nz'\nthe end\n");
    expect("a\n\"\"\"\"", "types: a string\n2: a='\"'\nthe end\n");
    // Blank lines are passed over, except where there is one column.
    expect("a,b\n\n\r\n1,2\n", "types: a int64, b int64\n4: a=1 b=2\nthe end\n");
    expect("a\n\n1\n\r\n", "types: a int64\n2: a=null\n3: a=1\n4: a=null\nthe end\n");
    expect("a,b\n", "types:\nthe end\n");
    expect("\xef\xbb\xbf" "a,b\n1,2", "types: a int64, b int64\n2: a=1 b=2\nthe end\n");
    expect("a\tb\n1\t2,3\n", "types: a int64, b string\n2: a=1 b='2,3'\nthe end\n", .delimiter = '\t');
}

static void test_formulas(void) {
    expect("a\n'=1+1\n''=1\n'\n''\n'x\n'-\n'\xef\xbc\x9dx\n'\xef\xbc\x9cx\n'\xef\xbd\x9dx\n'\xef\xbc\n'\xc3\xa9""e\n",
           "types: a string\n2: a='=1+1'\n3: a=''=1'\n4: a='''\n5: a=''''\n6: a=''x'\n7: a='-'\n8: a='\xef\xbc\x9dx'\n9: a=''\xef\xbc\x9cx'\n"
           "10: a=''\xef\xbd\x9dx'\n12: a=''\xc3\xa9""e'\nline 11, invalidUTF8: the row is not valid UTF-8; --encoding names another <'\xef\xbc\n>\n"
           "the end\n");
    expect("a\n\"'=\"\"x\"\"\"\n", "types: a string\n2: a='=\"x\"'\nthe end\n");
}

static void test_refused_rows(void) {
    // A stray quote costs one row.
    expect("a,b\n1,\"open\n2,x\n",
           "types: a int64, b string\n3: a=2 b='x'\nline 2, malformed: a quote is not closed <1,\"open\n>\nthe end\n");
    expect("a,b\n1,\"x\"y\n2,x\"\n",
           "types:\nline 2, malformed: there is text after the closing quote of a cell <1,\"x\"y\n>\n"
           "line 3, malformed: there is a quote inside a cell that is not quoted <2,x\"\n>\nthe end\n");
    expect("a,b\n1\n1,2,3\n",
           "types:\nline 2, ragged: the row has 1 cells; the header has 2 <1\n>\nline 3, ragged: the row has 3 cells; the header has 2 <1,2,3\n>\n"
           "the end\n");
    expect("a,b\n1,\xff\n", "types:\nline 2, invalidUTF8: the row is not valid UTF-8; --encoding names another <1,\xff\n>\nthe end\n");
    expect("a\nx\"", "types:\nline 2, malformed: there is a quote inside a cell that is not quoted <x\">\nthe end\n", CSV);
    expect("a,b\n\rx", "types:\nline 2, ragged: the row has 1 cells; the header has 2 <\rx>\nthe end\n", CSV);
    // Lines within a row count.
    expect("a,b\n\"1\n2\",x\ny\n", "types: a string, b string\n2: a='1\n2' b='x'\nline 4, ragged: the row has 1 cells; the header has 2 <y\n>\n"
           "the end\n");
    expect_bytes("a,b\nx,\0\n", "types: a unknown\nline 2, b, malformed: a cell holds the character NUL, which cannot be stored <x,\\0\n>\n"
           "the end\n");
    expect_named("id,b\na\tb,1\n2,2\n",
                 "types: b int64\n3: '2' b=2\nline 2, id, badName: the record name has a control character at byte 1 <a\tb,1\n>\nthe end\n");
}

/// A text of a beginning, a character again and again, and an end; the caller frees it.
static char *text_repeat(const char *before, char c, size_t count, const char *after) {
    char *text = malloc(strlen(before) + count + strlen(after) + 1);
    strcpy(text, before);
    memset(text + strlen(before), c, count);
    strcpy(text + strlen(before) + count, after);
    return text;
}

static void test_long_rows(void) {
    expect("a\n123456789\n12345678\n", "types: a int64\n3: a=12345678\nline 2, tooLong: the row is longer than 9 bytes <123456789\n>\nthe end\n",
           .row_limit = 9);
    // The line of a quote that is not closed within the limit is refused, and reading goes on behind it.
    expect("a\n\"1\n2\n345678901234\n5\n", "types: a int64\n3: a=2\n5: a=5\n"
           "line 2, tooLong: the row is longer than 9 bytes; is a quote not closed? <\"1\n>\n"
           "line 4, tooLong: the row is longer than 9 bytes <345678901234\n>\nthe end\n", .row_limit = 9);
    // A row that is longer than the buffer is passed over to the end of its line.
    char *text = text_repeat("a\n", '7', 3 << 20, "\n5\n");
    expect(text, "types: a int64\n3: a=5\nline 2, tooLong: the row is longer than 9 bytes; is a quote not closed? <65536 bytes…>\nthe end\n",
           .row_limit = 9);
    free(text);
    text = text_repeat("a\n\"", '7', 3 << 20, "\n5\n");
    expect(text, "types: a int64\n3: a=5\nline 2, tooLong: the row is longer than 9 bytes; is a quote not closed? <65536 bytes…>\nthe end\n",
           .row_limit = 9);
    free(text);
    // Over the first MiB, which is read at once.
    text = text_repeat("a\n\"", '7', 3 << 20, "\"\"\"\n5\n");
    reading how = {0};
    tide_text found = source_read(source_of(text, strlen(text)), &how);
    check(strstr(found.bytes, "7\"'\n3: a='5'\nthe end\n") && found.length > 3 << 20, "%zu bytes", found.length);
    tide_text_free(&found);
    free(text);
}

static void test_headers(void) {
    expect("", "malformed: the source is empty: a CSV begins with a row of column names\n", CSV);
    expect("a,\"b\n", "malformed: line 1: a quote is not closed\n");
    expect("a,\xff\n", "invalidUTF8: line 1: the column names are not valid UTF-8; --encoding names another encoding (windows-1252, latin-1, …)\n");
    expect("a,,b\n", "badIdentifier: line 1: column 2 has no name; give it one in the file\n");
    expect("a,b c\n", "badIdentifier: line 1: column 2, 'b c', cannot name a field: a name is a letter, then letters, digits or '_'; give it another "
           "name with --map 'b c=NAME'\n");
    expect("a,b c\n1,2\n", "types: a int64, b int64\n2: a=1 b=2\nthe end\n",
           .mappings = (tide_mapping[]){{"x", "y"}, {"b c", "b"}}, .mapping_count = 2);
    expect("a,b,a\n", "duplicateKey: line 1: columns 1 and 3 have the same name, 'a'\n");
    expect("a,b,A\n", "badIdentifier: line 1: column 3, 'A', differs from the column 'a' by the case of letters only; give it that name, or another "
           "one, with --map 'A=NAME'\n");
    expect("a,I\n", "badIdentifier: line 1: column 2, 'I', differs from the field 'i' by the case of letters only; give it that name, or another "
           "one, with --map 'I=NAME'\n", .fields = &(tide_known_field){"i", TIDE_TYPE_INT64, NULL}, .field_count = 1);
    expect_named("a,ID\n", "badIdentifier: line 1: column 2, 'ID', differs from the field of the record names, 'id' by the case of letters "
                 "only; give it that name, or another one, with --map 'ID=NAME'\n");
    expect_named("a,b\n", "missingName: line 1: there is no column 'id' for the record names\n", .name_is_required = true);
    expect_named("id,b\nx,1\n", "types: b int64\n2: 'x' b=1\nthe end\n", .name_is_required = true);
    // Any column can hold the names, whatever it is called.
    expect_read(__FILE__, __LINE__, "the id,b\nx,1\n", 13, &(tide_manifest_options){.type_name = "T", .name_field = "the id"}, true,
                "types: b int64\n2: 'x' b=1\nthe end\n");
    expect("a;b\n1;2\n", "badIdentifier: line 1: the only column is 'a;b'; if semicolons separate columns, add --delimiter ';'\n");
    expect("a\tb\n1\t2\n", "badIdentifier: line 1: the only column is 'a\tb'; if tabs separate columns, add --delimiter tab\n");
    expect("a,b\n1,2\n", "badIdentifier: line 1: the only column is 'a,b'; if commas separate columns, add --delimiter ','\n", .delimiter = ';');
    expect("a,b\n1,2\n", "badIdentifier: line 1: the only column is 'a,b'; if commas separate columns, add --delimiter ','\n", .delimiter = '\t');
    expect("a-b\n1\n", "badIdentifier: line 1: column 1, 'a-b', cannot name a field: a name is a letter, then letters, digits or '_'; give "
           "it another name with --map 'a-b=NAME'\n");
    char *many = text_repeat("a", ',', 1900, "\n");
    expect(many, "tooManyFields: line 1: 1901 columns; at most 1900 are possible\n");
    free(many);
    char *long_name = text_repeat("", 'a', 256, "\n1\n");
    reading how = {0};
    tide_text found = source_read(source_of(long_name, strlen(long_name)), &how);
    check(strstr(found.bytes, "cannot name a field: it is longer than 255 bytes; give"), "%s", found.bytes);
    tide_text_free(&found);
    free(long_name);
    long_name = text_repeat("", 'a', 3 << 20, "\n1\n");
    expect(long_name, "tooLong: line 1: the row is longer than 9 bytes; is a quote not closed?\n", .row_limit = 9);
    free(long_name);
}

/// The reader says which fields and mappings the source has, for a note of those that it does not have.
static void test_occurrences(void) {
    tide_manifest_options options = {
        .type_name = "T", .fields = (tide_known_field[]){{"b", TIDE_TYPE_STRING, NULL}, {"c", TIDE_TYPE_STRING, NULL},
            {"bb", TIDE_TYPE_STRING, NULL}},
        .field_count = 3, .mappings = (tide_mapping[]){{"x", "b"}, {"y", "d"}, {"b", "e"}}, .mapping_count = 3};
    int source = source_of("a,x\n1,2\n", 8);
    tide_manifest *manifest;
    check(!tide_manifest_create(source, &options, &manifest, NULL), "a header");
    check(tide_manifest_format(manifest) == TIDE_FORMAT_CSV && !tide_manifest_is_converted(manifest), "%d", tide_manifest_format(manifest));
    check(tide_manifest_field_occurred(manifest, 0) && !tide_manifest_field_occurred(manifest, 1) && !tide_manifest_field_occurred(manifest, 2),
        "fields");
    check(tide_manifest_mapping_occurred(manifest, 0) && !tide_manifest_mapping_occurred(manifest, 1), "mappings");
    check(!tide_manifest_mapping_occurred(manifest, 2), "a field is not mapped twice");
    tide_manifest_destroy(manifest);
    close(source);
}

int main(void) {
    test_cells();
    test_formulas();
    test_refused_rows();
    test_long_rows();
    test_headers();
    test_occurrences();
    return tests_end("manifest_csv_test");
}
