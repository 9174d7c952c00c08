// Goal: values become what Documentation/Formats/manifest.md says, in "Types" and "Values": the type of a field follows from the values of the
// first batch, and a value that does not fit is a refused row, with a reason and a remedy.
// Method: small sources, whose rows and refusals are compared with the expected ones.

#include "manifest_reading.h"

#define FIELDS(...) .fields = (tide_known_field[]){__VA_ARGS__}, .field_count = sizeof(tide_known_field[]){__VA_ARGS__} / sizeof(tide_known_field)
#define FIELD(type) FIELDS({"v", type, NULL})
#define LIST(type) FIELD(type | TIDE_TYPE_LIST)

static void test_types_of_csv(void) {
    expect("v\ntrue\nFalse\nTRUE\n", "types: v boolean\n2: v=1\n3: v=0\n4: v=1\nthe end\n");
    expect("v\ntrue\n1\n", "types: v string\n2: v='true'\n3: v='1'\nthe end\n");
    expect("v\n1.5\ntrue\n", "types: v string\n2: v='1.5'\n3: v='true'\nthe end\n");
    expect("v\ntrue\nyes\n", "types: v string\n2: v='true'\n3: v='yes'\nthe end\n");
    expect("v\n-1\n0\n", "types: v int64\n2: v=-1\n3: v=0\nthe end\n");
    expect("v\n1\n2.5\n1e3\n", "types: v double\n2: v=1.0\n3: v=2.5\n4: v=1000.0\nthe end\n");
    // Articles have numbers with leading zeros; a number has no plus.
    expect("v\n007\n", "types: v string\n2: v='007'\nthe end\n");
    expect("v\n+7\n", "types: v string\n2: v='+7'\nthe end\n");
    expect("v\n-\n", "types: v string\n2: v='-'\nthe end\n");
    expect("v\n-0\n", "types: v double\n2: v=0.0\nthe end\n");
    expect("v\n2024-05-01\n01.05.2024 12:30\n", "types: v timestamp\n2: v=1714521600000000\n3: v=1714566600000000\nthe end\n");
    expect("v\n2024-05-01\nsoon\n", "types: v string\n2: v='2024-05-01'\n3: v='soon'\nthe end\n");
    // A type stays: the second batch is read by the type of the first.
    reading how = {.row_limit = 1};
    tide_text found = source_read(source_of("v\n1\n2.5\n3\n", 10), &how);
    expect_text(__FILE__, __LINE__, found.bytes,
                "types: v int64\n2: v=1\ntypes: v int64\nline 3, v, wrongType: the field is an integer; the row has a number with a "
                "fraction <2.5\n>\n"
                "types: v int64\n4: v=3\ntypes: v int64\nthe end\n");
    tide_text_free(&found);
}

static void test_types_of_json(void) {
    expect("{\"v\":true}\n{\"v\":false}", "types: v boolean\n1: v=1\n2: v=0\nthe end\n");
    expect("{\"v\":true}\n{\"v\":2}", "types: v int64\n1: v=1\n2: v=2\nthe end\n");
    expect("{\"v\":1}\n{\"v\":2.5}", "types: v double\n1: v=1.0\n2: v=2.5\nthe end\n");
    expect("{\"v\":1}\n{\"v\":\"x\"}", "types: v int64\n1: v=1\n"
           "line 2, v, wrongType: the field is an integer; the row has a string <{\"v\":\"x\"}>\nthe end\n");
    expect("{\"v\":\"x\"}\n{\"v\":1}", "types: v string\n1: v='x'\n"
           "line 2, v, wrongType: the field is a string; the row has an integer <{\"v\":1}>\nthe end\n");
    expect("{\"v\":\"2024-05-01T00:00:00Z\"}", "types: v timestamp\n1: v=1714521600000000\nthe end\n");
    expect("{\"v\":[]}", "types: v list<string>\n1: v='[]'\nthe end\n");
    expect("{\"v\":[1,true]}", "types: v list<int64>\n1: v='[1,1]'\nthe end\n");
    expect("{\"v\":[1]}\n{\"v\":[false,2.5]}", "types: v list<double>\n1: v='[1]'\n"
           "line 2, v, wrongType: the list has an element that is no number <{\"v\":[false,2.5]}>\nthe end\n");
    expect("{\"v\":[\"a\"]}\n{\"v\":[1]}", "types: v list<string>\n1: v='[\"a\"]'\n"
           "line 2, v, wrongType: the list has an element that is no string <{\"v\":[1]}>\nthe end\n");
    expect("{\"v\":[\"2024-05-01\"]}\n{\"v\":[]}", "types: v list<timestamp>\n1: v='[1714521600000000]'\n2: v='[]'\nthe end\n");
    expect("{\"v\":[\"2024-05-01\"]}\n{\"v\":[\"a\"]}", "types: v list<string>\n1: v='[\"2024-05-01\"]'\n2: v='[\"a\"]'\nthe end\n");
    // Lists that are no lists of values say nothing.
    expect("{\"v\":[[1]]}\n{\"v\":[null]}\n{\"v\":[2.5]}", "types: v list<double>\n3: v='[2.5]'\n"
           "line 1, v, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":[[1]]}>\n"
           "line 2, v, wrongType: the list has an element that is no number <{\"v\":[null]}>\nthe end\n");
    expect("{\"v\":{\"latitude\":1,\"longitude\":2}}", "types: v location\n1: v='{\"latitude\":1,\"longitude\":2}'\nthe end\n");
    // A field without a value has no type yet.
    expect("{\"v\":null}\n{\"w\":1}", "types: v unknown, w int64\n1: v=null\n2: w=1\nthe end\n");
    // Where a field may be a list, its first value decides.
#define OPEN FIELD(TIDE_TYPE_ASSET), .open_field_count = 1
    expect("{\"v\":null}\n{\"v\":[\"a\"]}\n{\"v\":\"b\"}", "types: v list<asset>\n1: v=null\n2: v=path 'a'\n"
           "line 3, v, wrongType: the field is a list; the row has a string <{\"v\":\"b\"}>\nthe end\n", OPEN);
    expect("{\"v\":\"a\"}\n{\"v\":[\"b\"]}", "types: v asset\n1: v=path 'a'\n"
           "line 2, v, wrongType: the field is an asset, given as the path of a file; the row has a list <{\"v\":[\"b\"]}>\nthe end\n", OPEN);
    expect("x\n{\"v\":\"a\"}", "types: v asset\n2: v=path 'a'\nline 1, notAnObject: the row is not a JSON object <x>\nthe end\n",
           OPEN, .format = TIDE_FORMAT_JSON_LINES);
    expect("{\"w\":1}", "types: v unknown, w int64\n1: w=1\nthe end\n", OPEN);
}

static void test_booleans(void) {
    expect("v\ntrue\n0\n1\nFALSE\n2\nyes\n", "types: v boolean\n2: v=1\n3: v=0\n4: v=1\n5: v=0\n"
           "line 6, v, wrongType: the value is no Boolean; write true or false <2\n>\n"
           "line 7, v, wrongType: the value is no Boolean; write true or false <yes\n>\nthe end\n", FIELD(TIDE_TYPE_BOOLEAN));
    expect("{\"v\":true}\n{\"v\":0}\n{\"v\":2}\n{\"v\":0.5}\n{\"v\":\"true\"}\n", "types: v boolean\n1: v=1\n2: v=0\n"
           "line 3, v, wrongType: the field is a Boolean, true or false; the row has 2 <{\"v\":2}>\n"
           "line 4, v, wrongType: the field is a Boolean; the row has a number with a fraction <{\"v\":0.5}>\n"
           "line 5, v, wrongType: the field is a Boolean; the row has a string <{\"v\":\"true\"}>\nthe end\n", FIELD(TIDE_TYPE_BOOLEAN));
}

static void test_integers(void) {
    expect("v\n9223372036854775807\n-9223372036854775808\ntrue\n9223372036854775808\n123456789012345678901234567890\n2.0\n2.5\n1e15\n1e16\nx\n"
           "\"1,5\"\n",
           "types: v int64\n2: v=9223372036854775807\n3: v=-9223372036854775808\n4: v=1\n7: v=2\n9: v=1000000000000000\n"
           "line 5, v, outOfRange: the number 9223372036854775808 is beyond what 64 bits hold <9223372036854775808\n>\n"
           "line 6, v, outOfRange: the number 123456789012345678901234567890 is beyond what 64 bits hold <123456789012345678901234567890\n>\n"
           "line 8, v, wrongType: the field is an integer; the row has a number with a fraction <2.5\n>\n"
           "line 10, v, wrongType: the field is an integer; the row has a number with a fraction <1e16\n>\n"
           "line 11, v, wrongType: the value is no integer <x\n>\n"
           "line 12, v, wrongType: the value is no integer; --decimal-comma reads such as 1,5 <\"1,5\"\n>\nthe end\n", FIELD(TIDE_TYPE_INT64));
    expect("{\"v\":true}\n{\"v\":2.0}\n{\"v\":1e16}\n{\"v\":9223372036854775808}\n{\"v\":123456789012345678901234567890}\n{\"v\":[1]}\n"
           "{\"v\":{\"latitude\":1,\"longitude\":2}}\n",
           "types: v int64\n1: v=1\n2: v=2\n"
           "line 4, v, outOfRange: the number 9223372036854775808 is beyond what 64 bits hold <{\"v\":9223372036854775808}>\n"
           "line 5, v, outOfRange: the number 123456789012345678901234567890 is beyond what 64 bits hold <{\"v\":123456789012345678901234567890}>\n"
           "line 3, v, wrongType: the field is an integer; the row has a number with a fraction <{\"v\":1e16}>\n"
           "line 6, v, wrongType: the field is an integer; the row has a list <{\"v\":[1]}>\n"
           "line 7, v, wrongType: the field is an integer; the row has an object <{\"v\":{\"latitude\":1,\"longitude\":2}}>\nthe end\n",
           FIELD(TIDE_TYPE_INT64));
}

static void test_reals(void) {
    expect("v\n\"x,y\"\n", "types: v int64\nline 2, v, wrongType: the value is no integer <\"x,y\"\n>\nthe end\n", FIELD(TIDE_TYPE_INT64));
    expect("{\"v\":[0.30000000000000004,0.1234567890123456]}\n",
           "types: v list<double>\n1: v='[0.30000000000000004,0.1234567890123456]'\nthe end\n", LIST(TIDE_TYPE_DOUBLE));
    expect("{\"v\":1234567890123456789012345678901234567890123456789012345678901234567890}\n",
           "types:\n"
           "line 1, v, outOfRange: the number 123456789012345678901234567890123456789012345678901234567890 is beyond what 64 bits hold <76 bytes>\n"
           "the end\n");
    expect("v\n1\n9007199254740993\n-0.0\n1e400\n-1e400\nx\n\"1.234,5\"\n9223372036854775807\n",
           "types: v double\n2: v=1.0\n4: v=0.0\n"
           "line 3, v, outOfRange: the integer 9007199254740993 cannot be held by a double without loss <9007199254740993\n>\n"
           "line 5, v, outOfRange: the number 1e400 is beyond what 64 bits hold <1e400\n>\n"
           "line 6, v, outOfRange: the number -1e400 is beyond what 64 bits hold <-1e400\n>\n"
           "line 7, v, wrongType: the value is no number <x\n>\n"
           "line 8, v, wrongType: the value is no number; --decimal-comma reads such as 1,5 <\"1.234,5\"\n>\n"
           "line 9, v, outOfRange: the integer 9223372036854775807 cannot be held by a double without loss <9223372036854775807\n>\nthe end\n",
           FIELD(TIDE_TYPE_DOUBLE));
    expect("{\"v\":-0.0}\n{\"v\":true}\n{\"v\":1e400}\n", "types: v double\n1: v=0.0\n"
           "line 3, v, outOfRange: the number 1e400 is beyond what 64 bits hold <{\"v\":1e400}>\n"
           "line 2, v, wrongType: the field is a number; the row has a Boolean <{\"v\":true}>\nthe end\n", FIELD(TIDE_TYPE_DOUBLE));
}

static void test_decimal_comma(void) {
#define COMMA .decimal_comma = true, .delimiter = ';', .format = TIDE_FORMAT_CSV
    expect("v\n1,5\n-1.234.567,25\n1 234\n1'234\n1\u00a0234\n1\u202f234\n1\u2019234\n1234,5\n",
           "types: v double\n2: v=1.5\n3: v=-1234567.25\n4: v=1234.0\n5: v=1234.0\n6: v=1234.0\n7: v=1234.0\n8: v=1234.0\n9: v=1234.5\nthe end\n",
           COMMA);
    expect("v\n1.234\n12\n", "types: v int64\n2: v=1234\n3: v=12\nthe end\n", COMMA);
    // None of these is a number with a decimal comma.
    expect("v\n1.5\n1,\n,5\n-\nx\n1.2345\n1.23.456\n1234.567\n1,5x\n1\u00a02\n1234567890123456789012345678901234567890123456789012345678901234\n"
           "\"\"\n",
           "types: v double\n"
           "line 2, v, wrongType: the value is no number with a decimal comma <1.5\n>\n"
           "line 3, v, wrongType: the value is no number with a decimal comma <1,\n>\n"
           "line 4, v, wrongType: the value is no number with a decimal comma <,5\n>\n"
           "line 5, v, wrongType: the value is no number with a decimal comma <-\n>\n"
           "line 6, v, wrongType: the value is no number with a decimal comma <x\n>\n"
           "line 7, v, wrongType: the value is no number with a decimal comma <1.2345\n>\n"
           "line 8, v, wrongType: the value is no number with a decimal comma <1.23.456\n>\n"
           "line 9, v, wrongType: the value is no number with a decimal comma <1234.567\n>\n"
           "line 10, v, wrongType: the value is no number with a decimal comma <1,5x\n>\n"
           "line 11, v, wrongType: the value is no number with a decimal comma <1\u00a02\n>\n"
           "line 12, v, wrongType: the value is no number with a decimal comma <65 bytes>\n"
           "line 13, v, wrongType: the value is no number with a decimal comma <\"\"\n>\nthe end\n", COMMA, FIELD(TIDE_TYPE_DOUBLE));
    expect("v\n1,5\nx\n", "types: v string\n2: v='1,5'\n3: v='x'\nthe end\n", COMMA);
    expect("v\n2,0\nx\n", "types: v int64\n2: v=2\nline 3, v, wrongType: the value is no integer with a decimal comma <x\n>\nthe end\n",
           COMMA, FIELD(TIDE_TYPE_INT64));
}

static void test_bytes(void) {
    expect("v\nAAH/\nAA==\nAAE=\nAA\n-_-_\n+/+/\n\"\"\n", "types: v bytes\n2: v=x0001ff\n3: v=x00\n4: v=x0001\n5: v=x00\n6: v=xfbffbf\n"
           "7: v=xfbffbf\n8: v=x\nthe end\n",
           FIELD(TIDE_TYPE_BYTES));
    expect("v\nA\nAAAAA\nAA=\nAAA==\nA A=\nA*==\n====\n", "types: v bytes\n"
           "line 2, v, wrongType: the value is no Base64 <A\n>\nline 3, v, wrongType: the value is no Base64 <AAAAA\n>\n"
           "line 4, v, wrongType: the value is no Base64 <AA=\n>\nline 5, v, wrongType: the value is no Base64 <AAA==\n>\n"
           "line 6, v, wrongType: the value is no Base64 <A A=\n>\nline 7, v, wrongType: the value is no Base64 <A*==\n>\n"
           "line 8, v, wrongType: the value is no Base64 <====\n>\nthe end\n", FIELD(TIDE_TYPE_BYTES));
    expect("{\"v\":\"AAH/\"}\n{\"v\":1}", "types: v bytes\n1: v=x0001ff\n"
           "line 2, v, wrongType: the field is bytes in Base64; the row has an integer <{\"v\":1}>\n"
           "the end\n", FIELD(TIDE_TYPE_BYTES));
}

#define ID "00000000000000000000000000000000-5"

static void test_assets(void) {
    expect("v\na.png\nasset:" ID "\nasset:x\n./asset:x\nasset:\n\"\"\n[x].png\n[x]\n[]\n\"[\"\"a\"\"]\"\n",
           "types: v asset\n2: v=path 'a.png'\n3: v=claim '" ID "'\n5: v=path './asset:x'\n6: v=path 'asset:'\n8: v=path '[x].png'\n9: v=path '[x]'\n"
           "line 4, v, assetUnknown: the value is no asset identifier <asset:x\n>\nline 7, v, assetMissing: the path of the asset is empty <\"\"\n>\n"
           "line 10, v, wrongType: the field is an asset, given as the path of a file; the row has a list. In a CSV, a schema file must say "
           "that the field is list<asset> (--schema) <[]\n>\n"
           "line 11, v, wrongType: the field is an asset, given as the path of a file; the row has a list. In a CSV, a schema file must say "
           "that the field is list<asset> (--schema) <\"[\"\"a\"\"]\"\n>\nthe end\n", FIELD(TIDE_TYPE_ASSET));
    expect("v\n[\n[x\n", "types: v asset\n2: v=path '['\n3: v=path '[x'\nthe end\n", FIELD(TIDE_TYPE_ASSET));
    expect("{\"v\":\"[]\"}\n{\"v\":1}", "types: v asset\n1: v=path '[]'\n"
           "line 2, v, wrongType: the field is an asset, given as the path of a file; the row has an integer <{\"v\":1}>\nthe end\n",
           FIELD(TIDE_TYPE_ASSET));
}

static void test_references(void) {
#define TO_PLACE FIELDS({"v", TIDE_TYPE_REFERENCE, "Place"})
    expect("{\"v\":7}\n{\"v\":\"a\"}\n{\"v\":\"Place:a\"}\n{\"v\":\"Place:\"}\n{\"v\":\"00112233-4455-6677-8899-aabbccddeeff\"}\n{\"v\":\"\"}\n"
           "{\"v\":true}\n",
           "types: v reference\n1: v='Place:7'\n2: v='Place:a'\n3: v='Place:a'\n4: v='Place:Place:'\n5: v='00112233-4455-6677-8899-aabbccddeeff'\n"
           "line 6, v, badName: a reference is a record name of 1 to 255 bytes <{\"v\":\"\"}>\n"
           "line 7, v, wrongType: the field is a record name; the row has a Boolean <{\"v\":true}>\nthe end\n", TO_PLACE);
    expect("v\n7\na\n", "types: v reference\n2: v='7'\n3: v='a'\nthe end\n", FIELD(TIDE_TYPE_REFERENCE));
    char text[300] = "v\n";
    memset(text + 2, 'x', 250);
    expect(text, "types: v reference\nline 2, v, badName: a reference is a record name of 1 to 255 bytes <250 bytes>\nthe end\n", TO_PLACE);
    expect("{\"v\":[\"a\",\"Place:b\"]}\n{\"v\":[\"\"]}\n{\"v\":[7]}\n", "types: v list<reference>\n1: v='[\"Place:a\",\"Place:b\"]'\n"
           "line 2, v, badName: a reference is a record name of 1 to 255 bytes <{\"v\":[\"\"]}>\n"
           "line 3, v, wrongType: the list has an element that is no string <{\"v\":[7]}>\nthe end\n",
           FIELDS({"v", TIDE_TYPE_REFERENCE | TIDE_TYPE_LIST, "Place"}));
    expect("{\"v\":[\"a\"]}\n{\"v\":[\"a\",\"\"]}", "types: v list<reference>\n1: v='[\"a\"]'\n"
           "line 2, v, badName: a reference is a record name of 1 to 255 bytes <{\"v\":[\"a\",\"\"]}>\nthe end\n", LIST(TIDE_TYPE_REFERENCE));
}

int main(void) {
    test_types_of_csv();
    test_types_of_json();
    test_booleans();
    test_integers();
    test_reals();
    test_decimal_comma();
    test_bytes();
    test_assets();
    test_references();
    return tests_end("manifest_values_test");
}
