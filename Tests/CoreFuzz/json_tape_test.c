// Goal: a JSON message becomes the nodes that tide_json_tape.h describes, or is refused for the right reason, however hostile it is.
// Method: the nodes are written as JSON again and compared with the text.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide_json_tape.h"
#include "tide_text.h"

static int failures;

static uint32_t node_write(tide_text *out, const tide_json_node *nodes, uint32_t index) {
    static const char *const words[] = {"null", "false", "true"};
    const tide_json_node *node = &nodes[index];
    switch (node->kind) {
    case TIDE_JSON_INTEGER: tide_text_format(out, "%lld", (long long)node->integer); break;
    case TIDE_JSON_NUMBER: tide_text_format(out, "%.17g", node->number); break;
    case TIDE_JSON_STRING:
    case TIDE_JSON_NAME: tide_text_json_string(out, node->text, node->length); break;
    case TIDE_JSON_ARRAY:
    case TIDE_JSON_OBJECT: {
        bool is_object = node->kind == TIDE_JSON_OBJECT;
        uint32_t child = index + 1;
        tide_text_append(out, is_object ? "{" : "[", 1);
        for (uint32_t i = 0; i < node->length; i++) {
            if (i) tide_text_append(out, ",", 1);
            child = node_write(out, nodes, child);
            if (is_object) tide_text_append(out, ":", 1), child = node_write(out, nodes, child);
        }
        tide_text_append(out, is_object ? "}" : "]", 1);
        if (child != node->next) tide_text_format(out, "?");
        break;
    }
    default: tide_text_append(out, words[node->kind], strlen(words[node->kind]));
    }
    return node->next;
}

static void expect(const char *text, uint32_t depth, uint32_t values, tide_json_fault fault, const char *expected) {
    tide_json_tape *tape;
    tide_json_fault found = tide_json_tape_create(text, strlen(text), depth, values, &tape);
    tide_text out = {0};
    tide_text_append(&out, "", 0);
    if (tape) node_write(&out, tide_json_tape_root(tape), 0);
    if (found != fault || strcmp(out.bytes ? out.bytes : "", expected) != 0) {
        fprintf(stderr, "json_tape_test: %.200s: %d, %s\n", text, found, out.bytes ? out.bytes : "no tape");
        failures++;
    }
    tide_text_free(&out);
    tide_json_tape_destroy(tape);
}

static void expect_same(const char *text) { expect(text, 32, 1000, TIDE_JSON_SOUND, text); }
static void expect_fault(const char *text, tide_json_fault fault) { expect(text, 32, 1000, fault, ""); }

static void test_values(void) {
    expect_same("[null,false,true,0,-1,9223372036854775807,-9223372036854775808,0.5,\"\",\"a\\\"\\n\u00e9\",[],{},[[1],[2,[3]]]]");
    expect_same("{\"a\":1,\"b\":{\"a\":[{\"a\":2}],\"c\":null},\"\":\"x\"}");
    expect_same("\"text\"");
    expect_same("7");
    // Over 63 bits, a whole number is the nearest double.
    expect("18446744073709551615", 32, 10, TIDE_JSON_SOUND, "1.8446744073709552e+19");
    expect(" [ 1.0 , 1e3 , \"\\u00e9\\ud83d\\ude00\" ] ", 32, 10, TIDE_JSON_SOUND, "[1,1000,\"\u00e9\U0001f600\"]");
}

static void test_faults(void) {
    static const char *const malformed[] = {"", " ", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "[1 2]", "[1] 2", "tru", "nul", "\"a",
        "\"a\tb\"", "\"\\q\"", "\"\\ud800\"", "]"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) expect_fault(malformed[i], TIDE_JSON_MALFORMED);
    static const char *const numbers[] = {"[01]", "[-]", "[1.]", "[1e]", "[1e999]"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) expect_fault(numbers[i], TIDE_JSON_BAD_NUMBER);
    expect_fault("18446744073709551616", TIDE_JSON_BAD_NUMBER);
    expect_fault("\"\xff\"", TIDE_JSON_NOT_UTF8);
    expect("[[[1]]]", 4, 10, TIDE_JSON_SOUND, "[[[1]]]");
    expect("[[[1]]]", 2, 10, TIDE_JSON_TOO_DEEP, "");
    expect("[1,2,3]", 32, 4, TIDE_JSON_SOUND, "[1,2,3]");
    expect("[1,2,3]", 32, 3, TIDE_JSON_TOO_MANY, "");
    // Marks in strings are no values.
    expect("[\",:[{\\\",:[{\"]", 32, 2, TIDE_JSON_SOUND, "[\",:[{\\\",:[{\"]");
}

/// An object with two members of one name is refused, however many members it has.
static void test_duplicates(void) {
    expect("{\"a\":1,\"b\":2,\"a\":3}", 32, 100, TIDE_JSON_DUPLICATE, "\"a\"");
    expect("[{\"x\":{\"a\\u0062\":1,\"ab\":2}}]", 32, 100, TIDE_JSON_DUPLICATE, "\"ab\"");
    expect_same("[{\"a\":1},{\"a\":1}]");
    for (int count = 11; count <= 30; count++) {
        tide_text text = {0};
        tide_text_append(&text, "{", 1);
        // Not in the order of their names.
        for (int i = 0; i < count; i++) tide_text_format(&text, "%s\"m%d\":{\"m0\":%d}", i ? "," : "", i * 7 % 31, i);
        size_t length = text.length;
        tide_text_append(&text, "}", 1);
        expect_same(text.bytes);
        text.length = length;
        tide_text_format(&text, ",\"m7\":0}");
        expect(text.bytes, 32, 1000, TIDE_JSON_DUPLICATE, "\"m7\"");
        tide_text_free(&text);
    }
}

int main(void) {
    test_values();
    test_faults();
    test_duplicates();
    tide_json_tape_destroy(NULL);
    if (failures == 0) puts("json_tape_test: passed");
    return failures != 0;
}
