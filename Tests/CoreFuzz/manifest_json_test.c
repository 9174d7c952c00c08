// Goal: the reader detects each JSON layout (JSON Lines, an array, objects over several lines, an object with the rows in it) and reads it as
// Documentation/Formats/manifest.md says. A faulty row is refused with its line, and the rows around it are read.
// Method: small sources, whose rows and refusals are compared with the expected ones.

#include "manifest_reading.h"

#define LIST(of) .fields = &(tide_known_field){"v", of | TIDE_TYPE_LIST, NULL}, .field_count = 1

#define LINES .format = TIDE_FORMAT_JSON_LINES
#define ARRAY .format = TIDE_FORMAT_JSON_ARRAY

static void test_lines(void) {
    expect("{\"v\":1}\r\n\n \t\r\n{\"v\":2}", "types: v int64\n1: v=1\n4: v=2\nthe end\n");
    expect("\xef\xbb\xbf \n{\"v\":1}\n", "types: v int64\n2: v=1\nthe end\n");
    expect("", "types:\nthe end\n");
    expect(" \n\t", "types:\nthe end\n");
    expect(" \n", "types:\nthe end\n", LINES);
    expect("{\"v\":1}\n[2]\nx\n\"y\"\n{\"v\":3}\n", "types: v int64\n1: v=1\n5: v=3\nline 2, notAnObject: the row is not a JSON object <[2]>\n"
           "line 3, notAnObject: the row is not a JSON object <x>\nline 4, notAnObject: the row is not a JSON object <\"y\">\nthe end\n");
    expect("[1]\n{\"v\":1}\n", "types: v int64\n2: v=1\nline 1, notAnObject: the row is not a JSON object <[1]>\nthe end\n", LINES);
    expect("{\"v\":1} x\n{\"v\":1}{\"v\":2}\n",
           "types: v unknown\nline 1, malformed: the row is not valid JSON <{\"v\":1} x>\n"
           "line 2, malformed: the row goes on after its object <{\"v\":1}{\"v\":2}>\nthe end\n", LINES);
    // An object with the rows in it that is alone on its line is a row where lines are meant.
    expect("{\"v\":[{\"a\":1}]}",
           "types: v list<string>\nline 1, v, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":[{\"a\":1}]}>\nthe end\n",
           LINES);
    expect("{\"v\":[{\"a\":1}]}\n{\"v\":[{\"a\":2}]}",
           "types: v list<string>\nline 1, v, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":[{\"a\":1}]}>\n"
           "line 2, v, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":[{\"a\":2}]}>\nthe end\n", LINES);
}

/// Rows with a syntax error, or with a value that no field can hold, are refused.
static void test_faults_of_rows(void) {
    expect("{\"v\":\"\xff\"}\n",
           "types:\nline 1, invalidUTF8: the row is not valid UTF-8; --encoding names another encoding <{\"v\":\"\xff\"}>\nthe end\n");
    expect("{\"v\":\"x}\n{\"v\":1}\n", "types: v int64\n2: v=1\nline 1, malformed: a string is not closed <{\"v\":\"x}>\nthe end\n");
    expect("{\"v\":\"\\q\"}\n{\"\\q\":1}\n{\"v\":\"\\ud800\"}\n",
           "types:\nline 1, v, malformed: a string has an escape that stands for no character <{\"v\":\"\\q\"}>\n"
           "line 2, malformed: a string has an escape that stands for no character <{\"\\q\":1}>\n"
           "line 3, v, malformed: a string has an escape that stands for no character <{\"v\":\"\\ud800\"}>\nthe end\n");
    expect("{\"v\":\"a\tb\"}\n", "types:\nline 1, malformed: a string has a control character that is not escaped <{\"v\":\"a\tb\"}>\nthe end\n");
    expect("{\"v\":\"\\u0000\"}\n{\"v\":[\"\\u0000\"]}\n",
           "types: v list<string>\nline 1, v, malformed: a string holds the character NUL, which cannot be stored <{\"v\":\"\\u0000\"}>\n"
           "line 2, v, malformed: a string holds the character NUL, which cannot be stored <{\"v\":[\"\\u0000\"]}>\nthe end\n");
    expect("{\"v\":tru}\n{\"v\":nul}\n{\"v\":nulls}\n{\"v\":falsy}\n{\"v\":}\n{\"v\"}\n{v:1}\n{\"v\":1,}\n{\"v\" 1}\n",
           "types: v unknown\nline 1, v, malformed: the row is not valid JSON <{\"v\":tru}>\n"
           "line 2, v, malformed: the row is not valid JSON <{\"v\":nul}>\nline 3, v, malformed: the row is not valid JSON <{\"v\":nulls}>\n"
           "line 4, v, malformed: the row is not valid JSON <{\"v\":falsy}>\nline 5, v, malformed: the row is not valid JSON <{\"v\":}>\n"
           "line 6, malformed: the row is not valid JSON <{\"v\"}>\nline 7, malformed: the row is not valid JSON <{v:1}>\n"
           "line 8, malformed: the row is not valid JSON <{\"v\":1,}>\nline 9, malformed: the row is not valid JSON <{\"v\" 1}>\nthe end\n", LINES);
    expect("{\"v\":1e}\n{\"v\":01}\n{\"v\":-}\n{\"v\":1.}\n{\"v\":+1}\n{\"v\":.5}\n{\"v\":NaN}\n",
           "types:\nline 1, v, malformed: '1e' is not valid JSON <{\"v\":1e}>\nline 2, v, malformed: '01' is not valid JSON <{\"v\":01}>\n"
           "line 3, v, malformed: '-' is not valid JSON <{\"v\":-}>\nline 4, v, malformed: '1.' is not valid JSON <{\"v\":1.}>\n"
           "line 5, v, malformed: the row is not valid JSON <{\"v\":+1}>\nline 6, v, malformed: the row is not valid JSON <{\"v\":.5}>\n"
           "line 7, v, malformed: the row is not valid JSON <{\"v\":NaN}>\nthe end\n", LINES);
    expect("{\"v\":1,\"v\":2}\n{\"\":1}\n{\"a b\":1}\n{\"V\":1,\"v\":2}\n{\"tide_x\":1}\n{\"SQLite_x\":1}\n",
           "types: v unknown\nline 1, v, duplicateKey: the field occurs twice in the row <{\"v\":1,\"v\":2}>\n"
           "line 2, badIdentifier: a field has an empty name; give it one in the source <{\"\":1}>\n"
           "line 3, a b, badIdentifier: 'a b' cannot name a field: a name is a letter, then letters, digits or '_'; give it another name with "
           "--map <{\"a b\":1}>\n"
           "line 4, V, badIdentifier: 'V' differs from the field 'v' by the case of letters only; give it that name, or another one, with --map "
           "<{\"V\":1,\"v\":2}>\n"
           "line 5, tide_x, badIdentifier: 'tide_x' cannot name a field: it begins with 'tide_', which the store keeps for itself; give it another "
           "name with --map <{\"tide_x\":1}>\n"
           "line 6, SQLite_x, badIdentifier: 'SQLite_x' cannot name a field: it begins with 'sqlite_', which SQLite keeps for itself; give it "
           "another name with --map <{\"SQLite_x\":1}>\nthe end\n", LINES);
    expect("{\"v\":{\"a\":1}}\n{\"v\":{\"latitude\":1}}\n{\"v\":[1,]}\n{\"v\":[1 2]}\n{\"v\":[}\n{\"v\":{]}\n",
           "types: v location\nline 5, v, malformed: the row is not valid JSON <{\"v\":[}>\n"
           "line 1, v, wrongType: a nested object can only be a location {\"latitude\": …, \"longitude\": …}; --nested flatten or --nested json "
           "imports others <{\"v\":{\"a\":1}}>\nline 2, v, wrongType: a location needs latitude and longitude <{\"v\":{\"latitude\":1}}>\n"
           "line 3, v, wrongType: the field is a location; the row has a list <{\"v\":[1,]}>\n"
           "line 4, v, wrongType: the field is a location; the row has a list <{\"v\":[1 2]}>\n"
           "line 6, v, wrongType: the value is no location {\"latitude\": …, \"longitude\": …} <{\"v\":{]}>\nthe end\n", LINES);
    expect("{\"v\":\"\\u00e9\\n\"}\n{\"\\u0076\":\"x\"}\n", "types: v string\n1: v='é\n'\n2: v='x'\nthe end\n");
    expect("123456789\n{\"v\":1}\n",
           "types: v int64\n2: v=1\nline 1, tooLong: the row is longer than 8 bytes <123456789>\nthe end\n", LINES, .row_limit = 8);
}

static void test_names(void) {
    expect_named("{\"id\":\"a\"}\n{\"id\":7}\n{\"id\":null}\n{\"id\":1.5}\n{\"id\":true}\n{\"id\":\"a\",\"id\":\"b\"}\n{\"id\":\"\"}\n{\"id\":tru}\n",
           "types:\n1: 'a'\n2: '7'\nline 3, id, missingName: the record name is null <{\"id\":null}>\n"
           "line 4, id, badName: the record name is neither a string nor an integer <{\"id\":1.5}>\n"
           "line 5, id, badName: the record name is neither a string nor an integer <{\"id\":true}>\n"
           "line 6, id, duplicateKey: the field occurs twice in the row <{\"id\":\"a\",\"id\":\"b\"}>\n"
           "line 7, id, missingName: the record name is empty <{\"id\":\"\"}>\nline 8, id, malformed: the row is not valid JSON <{\"id\":tru}>\n"
           "the end\n", LINES);
    expect_named("{\"id\":\"a\"}\n{\"v\":1}\n",
           "types: v unknown\n1: 'a'\nline 2, id, missingName: the row has no record name <{\"v\":1}>\nthe end\n", .name_is_required = true);
    expect_named("{\"ID\":\"a\"}\n",
           "types:\n"
           "line 1, ID, badIdentifier: 'ID' differs from the field 'id' by the case of letters only; give it that name, or another one, with --map "
           "<{\"ID\":\"a\"}>\nthe end\n");
    expect_named("{\"key\":\"a\"}\n", "types:\n1: 'a'\nthe end\n", .mappings = &(tide_mapping){"key", "id"}, .mapping_count = 1);
}

static void test_arrays(void) {
    expect("[]", "types:\nthe end\n");
    expect(" [ ] \n", "types:\nthe end\n");
    expect("[\n{\"v\":1},\n{\"v\":2}\n]\n", "types: v int64\n2: v=1\n3: v=2\nthe end\n");
    expect("[{\"v\":\"a]},\\\"{\"},{\"v\":2,\"w\":[[]],\"x\":{}}]",
           "types: v string, w unknown, x unknown\n1: v='a]},\"{'\n"
           "line 1, v, wrongType: the field is a string; the row has an integer <{\"v\":2,\"w\":[[]],\"x\":{}}>\nthe end\n");
    expect("\r\n[\t{\"v\":1}\r\n,\t{\"v\":2}\r]", "types: v int64\n2: v=1\n3: v=2\nthe end\n");
    expect("[{\"v\":1}\n{\"v\":2} {\"v\":3}]",
           "types: v int64\n1: v=1\n2: v=2\n2: v=3\nline 2, malformed: a comma or ']' is missing before this place <{>\n"
           "line 2, malformed: a comma or ']' is missing before this place <{>\nthe end\n");
    expect("[{\"v\":1},,{\"v\":2},]",
           "types: v int64\n1: v=1\n1: v=2\nline 1, malformed: the row is empty <>\nline 1, malformed: the row is empty <>\nthe end\n");
    expect("[1,\"x\",[2],null,{\"v\":1}]",
           "types: v int64\n1: v=1\nline 1, notAnObject: the row is not a JSON object <1>\n"
           "line 1, notAnObject: the row is not a JSON object <\"x\">\nline 1, notAnObject: the row is not a JSON object <[2]>\n"
           "line 1, notAnObject: the row is not a JSON object <null>\nthe end\n");
    expect("[{\"v\":1}] x\ny", "types: v int64\n1: v=1\nline 1, malformed: there is text after the array <x\ny>\nthe end\n");
    expect("[{\"v\":1},{\"v\":2", "types: v int64\n1: v=1\nline 1, malformed: the source ends within this row <{\"v\":2>\nthe end\n");
    expect("[{\"v\":1},", "types: v int64\n1: v=1\nline 1, malformed: the source ends before the array does <>\nthe end\n");
    expect("[{\"v\":1}", "types: v int64\n1: v=1\nline 1, malformed: the source ends before the array does <>\nthe end\n");
    expect("[", "types:\nline 1, malformed: the source ends before the array does <>\nthe end\n");
    expect("[1", "types:\nline 1, malformed: the source ends within this row <1>\nthe end\n");
    expect("[{\"v\":1}}]",
           "types: v int64\n1: v=1\nline 1, malformed: a comma or ']' is missing before this place <}>\n"
           "line 1, notAnObject: the row is not a JSON object <}>\nthe end\n");
    expect("[{\"v\":1}}x]",
           "types: v int64\n1: v=1\nline 1, malformed: a comma or ']' is missing before this place <}>\n"
           "line 1, notAnObject: the row is not a JSON object <}x>\nthe end\n");
    expect("x", "malformed: line 1: a JSON array begins with '['\n", ARRAY);
    expect("\n\nx", "malformed: line 3: a JSON array begins with '['\n", ARRAY);
    expect("", "malformed: line 1: a JSON array begins with '['\n", ARRAY);
    expect("[{\"v\":123456789},{\"v\":1}]",
           "types: v int64\n1: v=1\nline 1, tooLong: the row is longer than 8 bytes <{\"v\":123456789}>\nthe end\n", .row_limit = 8);
}

static void test_several_lines(void) {
    expect("{\n\"v\":1\n}\n{\n\"v\":\n2}{\"v\":3}", "types: v int64\n1: v=1\n4: v=2\n6: v=3\nthe end\n");
    expect("{\n\"v\":1\n}\nx {\"v\":2}\n{\"v\":3}\ny",
           "types: v int64\n1: v=1\n5: v=3\nline 4, malformed: an object is expected here <x {\"v\":2}>\n"
           "line 6, malformed: an object is expected here <y>\nthe end\n");
    expect("{\n\"v\":1\n}\n{\"v\"", "types: v int64\n1: v=1\nline 4, malformed: the source ends within this row <{\"v\">\nthe end\n");
    expect("{\"v\":\n1}", "types: v int64\n1: v=1\nthe end\n");
    expect("{\"v\"\n:1}", "types: v int64\n1: v=1\nthe end\n");
    expect("{\"v\":1\n,\"w\":2}", "types: v int64, w int64\n1: v=1 w=2\nthe end\n");
    expect("{\"v\":[1,\n2\n]}", "types: v list<int64>\n1: v='[1,2]'\nthe end\n");
    expect("{\"v\":[\n1]}", "types: v list<int64>\n1: v='[1]'\nthe end\n");
    expect("{\"v\":1,\n\"w\":2}", "types: v int64, w int64\n1: v=1 w=2\nthe end\n");
    expect("{\"v\":{\n}}", "types: v location\nline 1, v, wrongType: a location needs latitude and longitude <{\"v\":{\n}}>\nthe end\n");
    expect("{\n}\n{\n}", "types:\n1:\n3:\nthe end\n");
    // A first line that ends where no object could go on is a broken row.
    expect("{\"v\":1,\n{\"v\":2}\n", "types: v int64\n2: v=2\nline 1, malformed: the row is not valid JSON <{\"v\":1,>\nthe end\n");
    expect("{\"v\":\n{\"v\":2}\n", "types: v int64\n2: v=2\nline 1, malformed: the row is not valid JSON <{\"v\":>\nthe end\n");
    expect("{\"v\":\"x\n{\"v\":2}\n", "types: v int64\n2: v=2\nline 1, malformed: a string is not closed <{\"v\":\"x>\nthe end\n");
    expect("{\"v\":1\n{\"v\":2}\n", "types: v int64\n2: v=2\nline 1, malformed: the row is not valid JSON <{\"v\":1>\nthe end\n");
    expect("{\"v\":\n", "types:\nline 1, malformed: the row is not valid JSON <{\"v\":>\nthe end\n");
    expect("{\"v\"\n", "types:\nline 1, malformed: the row is not valid JSON <{\"v\">\nthe end\n");
    expect("{\n", "types:\nline 1, malformed: the row is not valid JSON <{>\nthe end\n");
    // The array may have objects behind other values, and text with brackets.
    expect("{\"v\":\"\\\"[{\",\n\"w\":[[[1]]]}",
           "types: v string, w list<string>\nline 1, w, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":\"\\\"[{\",\n"
           "\"w\":[[[1]]]}>\nthe end\n");
}

static void test_wrappers(void) {
    expect("{\"rows\":[{\"v\":1},{\"v\":2}]}", "types: v int64\n1: v=1\n1: v=2\nthe end\n");
    expect("{\"n\":[1],\"rows\":[\n{\"v\":1},\n{\"v\":2}],\"more\":{\"x\":[1]},\"s\":\"[{\"}\n", "types: v int64\n2: v=1\n3: v=2\nthe end\n");
    expect("{\"rows\":[\n{\"v\":1}],\n\"more\":[ {\"v\":2}]}\nx",
           "types: v int64\n2: v=1\n"
           "line 3, malformed: the object has a second array of objects, which is not imported: take it out first, as with jq '.NAME' <>\nthe end\n");
    expect("{\"rows\":[\n{\"v\":1}],\n\"more\":[]} x", "types: v int64\n2: v=1\nline 3, malformed: there is text after the object <>\nthe end\n");
    expect("{\"rows\":[\n{\"v\":1}]", "types: v int64\n2: v=1\nline 2, malformed: the source ends before its object does <>\nthe end\n");
    expect("{\"rows\":[\n{\"v\":1}",
           "types: v int64\n2: v=1\nline 2, malformed: the source ends before the array does <>\n"
           "line 2, malformed: the source ends before its object does <>\nthe end\n");
    expect("{\"rows\":[\n{\"v\":1}],\"s\":\"x", "types: v int64\n2: v=1\nline 2, malformed: the source ends before its object does <>\nthe end\n");
    expect("{\"rows\":[{\"v\":1}]}\n{\"rows\":[{\"v\":2}]}",
           "types: rows list<string>\nline 1, rows, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"rows\":[{\"v\":1}]}>\n"
           "line 2, rows, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"rows\":[{\"v\":2}]}>\nthe end\n");
    expect("{\n\"rows\":[{\"v\":1}]}\n{\"rows\":[{\"v\":2}]}",
           "types: rows list<string>\nline 1, rows, tooDeep: a list holds strings, numbers or times, no lists or objects <{\n"
           "\"rows\":[{\"v\":1}]}>\nline 3, rows, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"rows\":[{\"v\":2}]}>\n"
           "the end\n");
    expect("{\"deep\":{\"rows\":[{\"v\":1}]},\n\"w\":2}",
           "types: deep location, w unknown\n"
           "line 1, deep, wrongType: a nested object can only be a location {\"latitude\": …, \"longitude\": …}; --nested flatten or --nested json "
           "imports others <{\"deep\":{\"rows\":[{\"v\":1}]},\n\"w\":2}>\nthe end\n");
    expect("{\"rows\":[{\"v\":1}]}", "types: v int64\n1: v=1\nthe end\n", ARRAY);
    expect("{\"rows\":[\n{\"v\":1}],\n\"more\":[{\"v\":2}],\n\"third\":[{\"v\":3}]}\n",
           "types: v int64\n2: v=1\n"
           "line 3, malformed: the object has a second array of objects, which is not imported: take it out first, as with jq '.NAME' <>\nthe end\n");
    expect("{\"rows\":[\n{\"v\":1}],\n\"more\":[{\"v\":2}",
           "types: v int64\n2: v=1\n"
           "line 3, malformed: the object has a second array of objects, which is not imported: take it out first, as with jq '.NAME' <>\nthe end\n");
    expect("{\"rows\":[]}", "types: rows list<string>\n1: rows='[]'\nthe end\n");
    expect("{\"rows\":[\n]}", "types: rows list<string>\n1: rows='[]'\nthe end\n");
}

/// Objects that are no locations, and lists of lists, as the options say.
static void test_nesting(void) {
    for (int depth = 257; depth <= 258; depth++) {
        char deep[600];
        int length = snprintf(deep, sizeof deep, "{\"a\":%0*d%0*d}\n", depth, 0, depth, 0);
        memset(deep + 5, '[', (size_t)depth);
        memset(deep + 5 + depth, ']', (size_t)depth);
        reading how = {.options = &(tide_manifest_options){.type_name = "T", .nesting = TIDE_NESTING_JSON}};
        tide_text found = source_read(source_of(deep, (size_t)length), &how);
        check(!strstr(found.bytes, "line 1, a, tooDeep: the row is nested too deeply") == (depth == 257), "%s", found.bytes);
        tide_text_free(&found);
    }
#define FLATTEN .nesting = TIDE_NESTING_FLATTEN
#define TEXT .nesting = TIDE_NESTING_JSON
    expect("{\"a\":{\"b\":1,\"c\":{\"d\":\"x\"}},\"l\":[1, [2]]}\n",
           "types: a_b int64, a_c_d string, l string\n1: a_b=1 a_c_d='x' l='[1,[2]]'\nthe end\n", FLATTEN);
    expect("{\"a\":{\"b\":1,\"c\":{\"d\":\"x\"}},\"l\":[1, [2]]}\n",
           "types: a string, l string\n1: a='{\"b\":1,\"c\":{\"d\":\"x\"}}' l='[1,[2]]'\nthe end\n", TEXT);
    expect("{\"a\":{\"longitude\":1,\"latitude\":2}}\n{\"a\":{\"latitude\":2,\"longitude\":\"x\"}}\n{\"b\":{\"latitude\":2}}\n",
           "types: a location, b string\n1: a='{\"latitude\":2,\"longitude\":1}'\n3: b='{\"latitude\":2}'\n"
           "line 2, a, wrongType: the field is a location; the row has a string <{\"a\":{\"latitude\":2,\"longitude\":\"x\"}}>\nthe end\n", TEXT);
    expect("{\"a\":{\"b\":1}}\n",
           "types: a location\n"
           "line 1, a, wrongType: a nested object can only be a location {\"latitude\": …, \"longitude\": …}; --nested flatten or --nested json "
           "imports others <{\"a\":{\"b\":1}}>\nthe end\n", TEXT, .fields = &(tide_known_field){"a", TIDE_TYPE_LOCATION, NULL}, .field_count = 1);
    expect("{\"a\":[\"[{\",\"\\\"[\"]}\n{\"a\":[{\"x\":[true,false,null,1e999,\"\\u00e9\"]}]}\n",
           "types: a list<string>\n1: a='[\"[{\",\"\\\"[\"]'\n"
           "line 2, a, wrongType: the field is a list; the row has a string <{\"a\":[{\"x\":[true,false,null,1e999,\"\\u00e9\"]}]}>\nthe end\n",
           TEXT);
    expect("{\"a\":{\"b.c\":1,\"B_c\":2}}\n",
           "types: a_b_c unknown\n"
           "line 1, a_B_c, badIdentifier: 'a_B_c' differs from the field 'a_b_c' by the case of letters only; give it that name, or another one, "
           "with --map <{\"a\":{\"b.c\":1,\"B_c\":2}}>\nthe end\n", FLATTEN);
    expect("{\"a\":{\"b\":1},\"a_b\":2}\n",
           "types: a_b unknown\nline 1, a_b, duplicateKey: the field occurs twice in the row <{\"a\":{\"b\":1},\"a_b\":2}>\nthe end\n", FLATTEN);
    expect_named("{\"a\":{\"key\":\"k\",\"b c\":1}}\n{\"a\":{\"b c\":1}}\n",
           "types: b int64\n1: 'k' b=1\n2: '95c446d5-deb1-8a3f-8fc6-4e697fdbaae7' b=1\nthe end\n", FLATTEN,
           .mappings = (tide_mapping[]){{"a.key", "id"}, {"a.b c", "b"}}, .mapping_count = 2);
    expect("{\"a b\":{\"c\":1}}\n{\"a\":{\"\":1}}\n{\"a\":{\"\\q\":1}}\n{\"a\":{\"b\":tru}}\n{\"a\":{\"b\" 1}}\n{\"a\":{\"b\":{\"c\" 1}}}\n"
           "{\"a\":}\n",
           "types: a_ int64\n2: a_=1\n"
           "line 1, a b_c, badIdentifier: 'a b_c' cannot name a field: a name is a letter, then letters, digits or '_'; give it another name with "
           "--map <{\"a b\":{\"c\":1}}>\nline 3, a, malformed: a string has an escape that stands for no character <{\"a\":{\"\\q\":1}}>\n"
           "line 4, a_b, malformed: the row is not valid JSON <{\"a\":{\"b\":tru}}>\n"
           "line 5, a, malformed: the row is not valid JSON <{\"a\":{\"b\" 1}}>\n"
           "line 6, a_b, malformed: the row is not valid JSON <{\"a\":{\"b\":{\"c\" 1}}}>\n"
           "line 7, a, malformed: the row is not valid JSON <{\"a\":}>\nthe end\n", FLATTEN, LINES);
    // A refusal names the object if the name of its member can't be read.
    expect("{\"a\":{\"b\":1,\"\\q\":2}}\n",
           "types: a_b unknown\nline 1, a, malformed: a string has an escape that stands for no character <{\"a\":{\"b\":1,\"\\q\":2}}>\nthe end\n",
           FLATTEN);
    expect("{\"a\":{\"b\":1 \"c\":2}}\n", "types:\nline 1, a, malformed: the row is not valid JSON <{\"a\":{\"b\":1 \"c\":2}}>\nthe end\n", FLATTEN);
    expect("{\"a\":{\"b\":}}\n{\"a\":[[1 2]]}\n{\"a\":{\"b\":1\n{\"w\":{\"b\":1}}\n",
           "types: b string, bc string, w string\n4: w='{\"b\":1}'\nline 1, a, malformed: the row is not valid JSON <{\"a\":{\"b\":}}>\n"
           "line 2, a, malformed: the row is not valid JSON <{\"a\":[[1 2]]}>\nline 3, malformed: the row is not valid JSON <{\"a\":{\"b\":1>\n"
           "the end\n", TEXT, LINES,
           .fields = (tide_known_field[]){{"b", TIDE_TYPE_STRING, NULL}, {"bc", TIDE_TYPE_STRING, NULL}}, .field_count = 2);
    expect("{\"a\":{\"b\":1\n", "types:\nline 1, malformed: the row is not valid JSON <{\"a\":{\"b\":1>\nthe end\n", LINES);
    // The syntax of nested values is checked before their JSON text is stored.
    expect("{\"a\":[[1,]]}\n{\"a\":[{\"b\" 1}]}\n{\"a\":{\"b\":[{\"\\q\":1}]}}\n{\"a\":[[\"\\q\"]]}\n{\"a\":[[01]]}\n{\"a\":[[tru]]}\n"
           "{\"a\":[[}]}\n{\"a\":{\"b\":[}}\n",
           "types:\nline 1, a, malformed: the row is not valid JSON <{\"a\":[[1,]]}>\n"
           "line 2, a, malformed: the row is not valid JSON <{\"a\":[{\"b\" 1}]}>\n"
           "line 3, a, malformed: a string has an escape that stands for no character <{\"a\":{\"b\":[{\"\\q\":1}]}}>\n"
           "line 4, a, malformed: a string has an escape that stands for no character <{\"a\":[[\"\\q\"]]}>\n"
           "line 5, a, malformed: '01' is not valid JSON <{\"a\":[[01]]}>\nline 6, a, malformed: the row is not valid JSON <{\"a\":[[tru]]}>\n"
           "line 7, a, malformed: the row is not valid JSON <{\"a\":[[}]}>\nline 8, a, malformed: the row is not valid JSON <{\"a\":{\"b\":[}}>\n"
           "the end\n", TEXT, LINES);
    reading how = {.options = &(tide_manifest_options){.type_name = "T", FLATTEN}};
    for (int depth = 33; depth <= 34; depth++) {
        char deep[300], *end = deep;
        for (int i = 0; i < depth; i++) end = stpcpy(end, "{\"a\":");
        end = stpcpy(end, "1");
        for (int i = 0; i < depth; i++) end = stpcpy(end, "}");
        tide_text found = source_read(source_of(deep, strlen(deep)), &how);
        check(!strstr(found.bytes, "tooDeep: the row is nested too deeply") == (depth == 33), "%s", found.bytes);
        tide_text_free(&found);
    }
    for (int length = 253; length <= 258; length++) {
        char text[300];
        snprintf(text, sizeof text, "{\"%0*d\":{\"a\":1}}\n", length, 0);
        memset(text + 2, 'n', (size_t)length);
        tide_text found = source_read(source_of(text, strlen(text)), &how);
        const char *expected = length == 253   ? "_a=1\nthe end"
                               : length < 256 ? "badIdentifier: the name of a field with that of its object is longer than 255 bytes"
                                               : "cannot name a field: it is longer than 255 bytes";
        check(strstr(found.bytes, expected), "%s", found.bytes);
        tide_text_free(&found);
    }
}

/// Sources whose beginning is longer than what is looked at to find out how they are laid out.
static void test_long_beginnings(void) {
    enum { size = 3 << 20 };
    static char text[size + 100], blanks[size + 1];
    reading how = {0}, strict = {.options = &(tide_manifest_options){.type_name = "T", .row_limit = 1000}};
    memset(blanks, ' ', size);
    static const struct {
        const char *before, *after, *expected;
        bool is_strict;
    } cases[] = {
        // One object over several lines, and the next one behind it.
        {"{\"v\":\"", "\",\n\"w\":1}\n{\"w\":2}", "w=1\n3: w=2\nthe end\n", false},
        {"{\n\"v\":\"", "\",\"w\":1}\n{\"w\":2}", "w=1\n3: w=2\nthe end\n", false},
        // Rows that begin behind the first MiB are a field.
        {"{\n\"v\":\"", "\",\"w\":[{\"x\":1}]}", "line 1, w, tooDeep: ", false},
        {"{\"v\":\"", "\",\"w\":[{\"x\":1}]}", "line 1, w, tooDeep: ", false},
        // A row of JSON Lines, which may be too long.
        {"{\"v\":\"", "\"}\n{\"w\":2}", "2: w=2\nthe end\n", false},
        {"{\"v\":\"", "\"}\n{\"w\":2}", "2: w=2\nline 1, tooLong: the row is longer than 1000 bytes <65536 bytes…>\nthe end\n", true},
        {"[{\"v\":\"", "\"},\n{\"w\":2}]", "2: w=2\nline 1, tooLong: the row is longer than 1000 bytes <65536 bytes…>\nthe end\n", true},
        {"[{\"v\":\"", "", "line 1, tooLong: the row is longer than 1000 bytes <65536 bytes…>\nthe end\n", true},
        {"[{\"v\":1}]x", "", "1: v=1\nline 1, malformed: there is text after the array <65536 bytes…>\nthe end\n", false},
        {"{\n\"v\":1}x", "\n{\"v\":2}", "3: v=2\nline 2, malformed: an object is expected here <65536 bytes…>\nthe end\n", false},
        // White space before the first row.
        {"", "\n{\"v\":2}", "2: v=2\nthe end\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int length = snprintf(text, sizeof text, "%s%s%s", cases[i].before, blanks, cases[i].after);
        tide_text found = source_read(source_of(text, (size_t)length), cases[i].is_strict ? &strict : &how);
        check(strstr(found.bytes, cases[i].expected), "%zu: %s", i, found.length < 10000 ? found.bytes : found.bytes + found.length - 100);
        tide_text_free(&found);
    }
    // A source that begins with more white space than a row may have is JSON Lines, of which such a line is passed over.
    int length = snprintf(text, sizeof text, "%s\n{\"v\":2}\nx\n", blanks);
    tide_text found = source_read(source_of(text, (size_t)length), &strict);
    check(strstr(found.bytes, "2: v=2\n") && strstr(found.bytes, "line 3, notAnObject"), "%s", found.bytes);
    tide_text_free(&found);
}

/// A row may have 1,000,000 commas, colons and opening brackets. Those within strings don't count.
static void test_value_limit(void) {
    enum { limit = 1000000 };
    static char text[4 * limit + 100];
    reading how = {0}, list = {.options = &(tide_manifest_options){.type_name = "T", LIST(TIDE_TYPE_INT64)}};
    static const char refused[] = "tooLong: the row has more than 1,000,000 values; divide it among several records";
    for (int extra = 0; extra < 2; extra++) {
        static const struct {
            const char *before, *item, *after;
            int own;
        } cases[] = {
            {"{\"v\":[1", ",1", "]}\n", 3},
            {"{\"v\":", "[", "", 2},
            {"{\"a\":1", ",\"b\":1", "}\n", 2},
            {"{\"v\":\",[{::\\\",\",\"w\":[1", ",1", "]}\n", 5},
            // A list in a cell of CSV.
            {"v\n\"[1", ",1", "]\"\n", 1},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char *end = stpcpy(text, cases[i].before);
            // A member has two marks.
            int marks = cases[i].item[1] == '"' ? 2 : 1;
            for (int count = cases[i].own + marks; count <= limit + extra * marks; count += marks) end = stpcpy(end, cases[i].item);
            end = stpcpy(end, cases[i].after);
            tide_text found = source_read(source_of(text, (size_t)(end - text)), cases[i].before[0] == '{' ? &how : &list);
            check(!strstr(found.bytes, refused) == (extra == 0), "%zu, %d: %.300s", i, extra, found.bytes);
            tide_text_free(&found);
        }
    }
    char *end = stpcpy(text, "{\"v\":\"");
    memset(end, ',', 2 * limit);
    stpcpy(end + 2 * limit, "\"}\n");
    tide_text found = source_read(source_of(text, strlen(text)), &how);
    check(!strncmp(found.bytes, "types: v string\n1: v=',,", 24), "%.300s", found.bytes);
    tide_text_free(&found);
}

int main(void) {
    test_lines();
    test_faults_of_rows();
    test_names();
    test_arrays();
    test_several_lines();
    test_wrappers();
    test_nesting();
    test_long_beginnings();
    test_value_limit();
    return tests_end("manifest_json_test");
}
