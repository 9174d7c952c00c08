// The search over titles and headings, and the menu of narrow windows. It needs no network: the entries are in index.js.
"use strict";

const input = document.getElementById("search");
const results = document.getElementById("results");
const up = document.body.dataset.up;
let chosen = -1;

/// How well an entry fits all the words: less is better, null is not at all. Titles of pages come before headings within them.
function rank(entry, words) {
    const heading = entry[0].toLowerCase();
    const page = entry[1].toLowerCase();
    let sum = page ? 1 : 0;
    for (const word of words) {
        const at = heading.indexOf(word);
        if (at === 0) continue;
        if (at > 0) sum += /[\p{L}\p{N}]/u.test(heading[at - 1]) ? 4 : 2;
        else if (page.includes(word)) sum += 6;
        else return null;
    }
    return sum + heading.length / 200;
}

function find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return window.searchEntries.map((entry) => [rank(entry, words), entry]).filter((it) => it[0] !== null)
        .sort((a, b) => a[0] - b[0]).slice(0, 20).map((it) => it[1]);
}

function close() {
    results.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
}

function show() {
    const found = find(input.value);
    results.replaceChildren(...found.map(([heading, page, group, address], index) => {
        const item = document.createElement("li");
        item.id = `result-${index}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const link = document.createElement("a");
        link.href = up + address;
        link.tabIndex = -1;
        link.textContent = heading;
        const where = document.createElement("small");
        where.textContent = page ? `${group} › ${page}` : group;
        link.append(where);
        item.append(link);
        return item;
    }));
    if (!found.length && input.value.trim()) {
        const none = document.createElement("li");
        none.className = "none";
        none.textContent = "No title or heading has all of these words.";
        results.append(none);
    }
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
    results.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!results.hidden));
}

function choose(index) {
    const items = results.querySelectorAll("[role=option]");
    if (!items.length) return;
    items[chosen]?.setAttribute("aria-selected", "false");
    chosen = (index + items.length) % items.length;
    items[chosen].setAttribute("aria-selected", "true");
    items[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[chosen].id);
}

input.addEventListener("input", show);
input.addEventListener("focus", () => { if (input.value) show(); });
input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Enter") results.querySelectorAll("[role=option] a")[Math.max(chosen, 0)]?.click();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search") || event.target.closest("#results a")) close(); });
document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
        event.preventDefault();
        input.focus();
    }
});

const button = document.getElementById("menu-button");
const menu = document.getElementById("menu");
button.addEventListener("click", () => button.setAttribute("aria-expanded", String(menu.classList.toggle("open"))));

// A long menu shows the page that is open.
const here = menu.querySelector("[aria-current]");
if (here && menu.scrollHeight > menu.clientHeight) menu.scrollTop = here.offsetTop - menu.clientHeight / 2;
