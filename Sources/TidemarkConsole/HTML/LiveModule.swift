/// The console's one script: it refreshes the part of a page that changes by itself. The page is the same without it, and is reloaded by hand.
///
/// What it puts into the page is what the server has made of the same page, of which no script runs.
enum LiveModule {
    /// The page that it is.
    static let name = "live.js"

    /// The header by which its requests say that nobody has made them: they don't keep a session from ending.
    static let header = "X-Tidemark-Background"

    static let source = """
        const pause = 5000;
        const region = document.querySelector("[data-live]");
        const place = document.querySelector("[data-live-choice]");
        if (region && place) {
          const label = document.createElement("label");
          const box = document.createElement("input");
          const state = document.createElement("span");
          label.className = "choice";
          box.type = "checkbox";
          box.checked = sessionStorage.getItem("live") !== "off";
          state.className = "quiet-text";
          state.setAttribute("role", "status");
          label.append(box, "Refresh by itself");
          place.append(label, state);
          box.addEventListener("change", () => {
            sessionStorage.setItem("live", box.checked ? "on" : "off");
            state.textContent = "";
          });
          // What somebody has opened, marked or gone to stays as it is.
          const isUsed = () => region.contains(document.activeElement) || region.querySelector("details[open]") || !getSelection().isCollapsed;
          const stop = (reason) => {
            box.checked = false;
            state.textContent = reason;
          };
          const refresh = async () => {
            if (!box.checked || document.hidden || isUsed()) return;
            let answer;
            try {
              answer = await fetch(location.href, { headers: { "X-Tidemark-Background": "1" } });
            } catch {
              return stop("The server can't be reached.");
            }
            if (!answer.ok || answer.redirected) return stop("Reload the page to go on.");
            const page = new DOMParser().parseFromString(await answer.text(), "text/html");
            const now = page.querySelector("[data-live]");
            if (now && now.innerHTML !== region.innerHTML && !isUsed()) region.replaceChildren(...now.childNodes);
          };
          setInterval(refresh, pause);
        }

        """
}
