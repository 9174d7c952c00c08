#include "tide_json_tape.h"

#include <algorithm>
#include <new>
#include <simdjson.h>
#include <string_view>
#include <vector>

using namespace simdjson;

static_assert(sizeof(tide_json_node) == 16, "a node is two words");

struct tide_json_tape {
    dom::parser parser;
    std::vector<tide_json_node> nodes;
};

namespace {

/// At its first use, simdjson chooses its code for the processor, and ends the process if it has no memory for that. This is the first use, as
/// the program starts.
[[maybe_unused]] const bool is_ready = simdjson::validate_utf8("", 0);

struct duplicate_name {
    std::string_view name;
};

/// The most nodes: `next` has 28 bits.
constexpr uint32_t most_nodes = (1u << 28) - 1;

/// Counts the marks before values and names: a sound text has at most so many of them. For any other text it is an estimate.
size_t marks(const char *bytes, size_t count) {
    size_t sum = 1;
    for (size_t i = 0; i < count; i++) {
        char c = bytes[i];
        if (c == '"') {
            // To the end of the string: characters in it are no marks.
            for (i++; i < count && bytes[i] != '"'; i++) i += bytes[i] == '\\';
            continue;
        }
        sum += (c == ',') | (c == ':') | (c == '[') | (c == '{');
    }
    return sum;
}

void put_text(tide_json_node &node, std::string_view text) {
    node.text = text.data();
    node.length = static_cast<uint32_t>(text.size());
}

/// - Throws: duplicate_name.
void check_names(std::vector<std::string_view> &names, size_t first) {
    auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
    if (names.size() - first <= 12) {
        for (auto one = begin; one != names.end(); ++one) {
            for (auto other = one + 1; other != names.end(); ++other) {
                if (*one == *other) throw duplicate_name{*one};
            }
        }
    } else {
        std::sort(begin, names.end());
        auto twice = std::adjacent_find(begin, names.end());
        if (twice != names.end()) throw duplicate_name{*twice};
    }
    names.resize(first);
}

/// Adds the nodes of an element. The recursion is bounded by the parser's depth.
void add(const dom::element &element, std::vector<tide_json_node> &nodes, std::vector<std::string_view> &names) {
    size_t place = nodes.size();
    nodes.push_back({});
    auto finish = [&](tide_json_kind kind) {
        nodes[place].kind = kind;
        nodes[place].next = static_cast<uint32_t>(nodes.size());
    };
    switch (element.type()) {
    case dom::element_type::NULL_VALUE: return finish(TIDE_JSON_NULL);
    case dom::element_type::BOOL: return finish(element.get_bool().value_unsafe() ? TIDE_JSON_TRUE : TIDE_JSON_FALSE);
    case dom::element_type::INT64: nodes[place].integer = element.get_int64().value_unsafe(); return finish(TIDE_JSON_INTEGER);
    case dom::element_type::UINT64:
        nodes[place].number = static_cast<double>(element.get_uint64().value_unsafe());
        return finish(TIDE_JSON_NUMBER);
    case dom::element_type::DOUBLE: nodes[place].number = element.get_double().value_unsafe(); return finish(TIDE_JSON_NUMBER);
    case dom::element_type::STRING: put_text(nodes[place], element.get_string().value_unsafe()); return finish(TIDE_JSON_STRING);
    case dom::element_type::ARRAY: {
        uint32_t count = 0;
        // Named, because a range-based loop does not keep the temporary that it takes its range from.
        const dom::array array = element.get_array().value_unsafe();
        for (dom::element child : array) {
            add(child, nodes, names);
            count++;
        }
        nodes[place].length = count;
        return finish(TIDE_JSON_ARRAY);
    }
    case dom::element_type::OBJECT: {
        uint32_t count = 0;
        const dom::object object = element.get_object().value_unsafe();
        for (auto member : object) {
            tide_json_node name = {};
            put_text(name, member.key);
            name.kind = TIDE_JSON_NAME;
            name.next = static_cast<uint32_t>(nodes.size() + 1);
            nodes.push_back(name);
            add(member.value, nodes, names);
            count++;
        }
        // Collected after the children, so that `names` has none of their names.
        size_t first = names.size();
        size_t child = place + 1;
        for (uint32_t i = 0; i < count; i++) {
            names.emplace_back(nodes[child].text, nodes[child].length);
            child = nodes[child + 1].next;
        }
        check_names(names, first);
        nodes[place].length = count;
        return finish(TIDE_JSON_OBJECT);
    }
    }
}

tide_json_fault fault(error_code code) {
    switch (code) {
    case SUCCESS: return TIDE_JSON_SOUND;
    case MEMALLOC: return TIDE_JSON_NO_MEMORY;
    case UTF8_ERROR: return TIDE_JSON_NOT_UTF8;
    case DEPTH_ERROR: return TIDE_JSON_TOO_DEEP;
    case NUMBER_ERROR: return TIDE_JSON_BAD_NUMBER;
    default: return TIDE_JSON_MALFORMED;
    }
}

}  // namespace

tide_json_fault tide_json_tape_create(const char *bytes, size_t count, uint32_t depth, uint32_t values, tide_json_tape **tape) {
    *tape = nullptr;
    size_t estimate = marks(bytes, count);
    if (estimate > values || estimate > most_nodes || count > UINT32_MAX - 64) return TIDE_JSON_TOO_MANY;
    tide_json_tape *made = new (std::nothrow) tide_json_tape;
    if (!made) return TIDE_JSON_NO_MEMORY;
    tide_json_fault found = TIDE_JSON_SOUND;
    try {
        found = fault(made->parser.allocate(count, depth));
        if (found == TIDE_JSON_SOUND) {
            dom::element root;
            found = fault(made->parser.parse(bytes, count).get(root));
            if (found == TIDE_JSON_SOUND) {
                made->nodes.reserve(estimate + 1);
                std::vector<std::string_view> names;
                add(root, made->nodes, names);
            }
        }
    } catch (const duplicate_name &twice) {
        tide_json_node name = {};
        put_text(name, twice.name);
        name.kind = TIDE_JSON_NAME;
        name.next = 1;
        made->nodes.resize(1);
        made->nodes[0] = name;
        *tape = made;
        return TIDE_JSON_DUPLICATE;
    } catch (const std::bad_alloc &) {
        found = TIDE_JSON_NO_MEMORY;
    }
    if (found != TIDE_JSON_SOUND) {
        delete made;
        return found;
    }
    *tape = made;
    return TIDE_JSON_SOUND;
}

const tide_json_node *tide_json_tape_root(const tide_json_tape *tape) { return tape->nodes.data(); }

void tide_json_tape_destroy(tide_json_tape *tape) { delete tape; }
