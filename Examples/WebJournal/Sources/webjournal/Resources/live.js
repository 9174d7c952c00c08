// The page follows the journal: when the server says that something has changed, the page is fetched again, and what differs in its live
// parts is put in. Everything else works without this script.

const place = document.body.dataset.follows;
const status = document.getElementById('live');

/** Gives an element the content of another one of the same kind, and leaves alone what is equal. */
function update(old, fresh) {
  if (old.isEqualNode(fresh)) return false;
  const lists = [old, fresh].map(it => it.querySelector(':scope > ul'));
  if (lists.every(Boolean) && [...lists[0].children, ...lists[1].children].every(it => it.id)) return updateList(...lists);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const index = focused ? [...old.querySelectorAll('a, button')].indexOf(focused) : -1;
  old.replaceChildren(...fresh.childNodes);
  if (index >= 0) [...old.querySelectorAll('a, button')][index]?.focus();
  mark(old);
  return true;
}

/** Gives a list the items of another one, by their ids, so that pictures that stay are not fetched again. */
function updateList(old, fresh) {
  const known = new Map([...old.children].map(it => [it.id, it]));
  let at = old.firstElementChild;
  let hasChanged = false;
  for (const item of [...fresh.children]) {
    let mine = known.get(item.id);
    known.delete(item.id);
    if (!mine) {
      mine = document.adoptNode(item);
      mark(mine);
      hasChanged = true;
    } else if (!mine.isEqualNode(item)) {
      const isFocused = mine.contains(document.activeElement);
      mine.replaceChildren(...item.childNodes);
      if (isFocused) mine.querySelector('a')?.focus();
      mark(mine);
      hasChanged = true;
    }
    if (mine === at) at = at.nextElementSibling;
    else old.insertBefore(mine, at);
  }
  for (const item of known.values()) {
    item.remove();
    hasChanged = true;
  }
  return hasChanged;
}

/** Shows for a moment what has changed. */
function mark(element) {
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  const color = getComputedStyle(document.body).getPropertyValue('--accent');
  element.animate([{outline: `3px solid ${color}`, outlineOffset: '2px'}, {outline: '3px solid transparent', outlineOffset: '6px'}], 1600);
}

let isFetching = false;
let isOutdated = false;

async function refresh() {
  if (isFetching) {
    isOutdated = true;
    return;
  }
  isFetching = true;
  try {
    do {
      isOutdated = false;
      const response = await fetch(location.href, {headers: {'X-Live': '1'}});
      if (response.status === 404) {
        status.textContent = 'This place is gone: it was deleted, or is shared with you no more.';
        document.querySelector('main').classList.add('gone');
        source.close();
        return;
      }
      // Nobody is signed in any more.
      if (response.redirected) location.reload();
      if (!response.ok || response.redirected) return;
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      let hasChanged = false;
      for (const part of document.querySelectorAll('[data-live]')) {
        const fresh = page.getElementById(part.id);
        if (fresh) hasChanged = update(part, fresh) || hasChanged;
      }
      document.title = page.title;
      if (hasChanged) say('Updated');
    } while (isOutdated);
  } catch {
    say('No connection');
  } finally {
    isFetching = false;
  }
}

let timer;

function say(text) {
  status.textContent = text;
  clearTimeout(timer);
  timer = setTimeout(() => { status.textContent = ''; }, 3000);
}

let source;

if (place) {
  source = new EventSource(place);
  source.addEventListener('change', refresh);
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) refresh();
    else status.textContent = 'No connection. Trying again …';
  });
  source.addEventListener('open', () => {
    if (status.textContent.startsWith('No connection')) status.textContent = '';
    document.documentElement.dataset.isLive = 'true';
  });
}

// A link that is told once is easily copied.
for (const field of document.querySelectorAll('input.link')) field.addEventListener('focus', () => field.select());
