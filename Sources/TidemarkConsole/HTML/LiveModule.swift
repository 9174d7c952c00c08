/// The console's only script. It refreshes the part of a page that changes by itself. Without it, the page has the same content,
/// and is reloaded by hand.
///
/// The script puts a part of the server's new version of the same page into the page. No script in that part runs.
enum LiveModule {
    /// The page at which the server has the script.
    static let name = "live.js"

    /// The header of the script's requests. No person has made them, so they do not keep a session from ending.
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
