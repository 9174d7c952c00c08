// Fuzzes the reader of JSON messages: the nodes of what it takes for sound are walked, and have to be what the header says.

#include <stdint.h>
#include <stdlib.h>

#include "tide_json_tape.h"

/// Returns the index behind the node.
static uint32_t node_walk(const tide_json_node *nodes, uint32_t index, uint32_t depth, uint64_t *sum) {
    const tide_json_node *node = &nodes[index];
    if (depth > 32) abort();
    switch (node->kind) {
    case TIDE_JSON_STRING:
    case TIDE_JSON_NAME:
        for (uint32_t i = 0; i < node->length; i++) *sum += (uint8_t)node->text[i];
        if (node->next != index + 1) abort();
        return index + 1;
    case TIDE_JSON_ARRAY: {
        uint32_t child = index + 1;
        for (uint32_t i = 0; i < node->length; i++) child = node_walk(nodes, child, depth + 1, sum);
        if (child != node->next) abort();
        return child;
    }
    case TIDE_JSON_OBJECT: {
        uint32_t child = index + 1;
        for (uint32_t i = 0; i < node->length; i++) {
            if (nodes[child].kind != TIDE_JSON_NAME) abort();
            child = node_walk(nodes, child, depth + 1, sum);
            child = node_walk(nodes, child, depth + 1, sum);
        }
        if (child != node->next) abort();
        return child;
    }
    case TIDE_JSON_INTEGER: *sum += (uint64_t)node->integer; break;
    case TIDE_JSON_NUMBER:
        if (node->number != node->number) abort();
        break;
    default: break;
    }
    if (node->next != index + 1) abort();
    return index + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_json_tape *tape = NULL;
    tide_json_fault fault = tide_json_tape_create((const char *)data, size, 32, 10000, &tape);
    uint64_t sum = 0;
    if (fault == TIDE_JSON_SOUND || fault == TIDE_JSON_DUPLICATE) {
        if (!tape) abort();
        node_walk(tide_json_tape_root(tape), 0, 1, &sum);
    } else if (tape) {
        abort();
    }
    tide_json_tape_destroy(tape);
    return sum == 42 ? 0 : 0;
}
