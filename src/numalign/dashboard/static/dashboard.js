"use strict";
// What htmx does not do: replacing single glyphs, moving among them by keys, the line that describes one, and saying
// that the server does not answer. Pages work without it, apart from updates.
(() => {
  const EVERY = 2000;
  // A page that takes long to make is asked for less often: a scheduler makes it beside its work.
  const SHARE = 20;
  const SELDOMEST = 300000;
  const PATIENCE = 20000;
  const PAUSE = 300;
  const SLIDING = "numalign-sliding";
  const fleet = () => document.getElementById("fleet");
  const banner = document.getElementById("banner");
  let failures = 0;
  let timer = 0;
  // The part that is followed, as the server made it.
  let written = "";

  function lost(text) {
    if (!banner) return;
    banner.hidden = !text;
    if (banner.textContent !== text) banner.textContent = text;
  }

  async function ask(address) {
    const answer = await fetch(address, {
      headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(PATIENCE), redirect: "manual",
    });
    if (answer.status === 401) throw new Error("You are signed out. Load the page again to sign in.");
    if (answer.status === 204) return "";
    const text = await answer.text();
    if (!answer.ok) {
      const page = new DOMParser().parseFromString(text, "text/html");
      const said = ["main p", "main h1"].map((each) => page.querySelector(each)?.textContent).find((each) => each);
      throw new Error(said ? said.replace(/\.?$/, ".") : `The server answers ${answer.status}.`);
    }
    return text;
  }

  // The glyphs that changed, or the whole list where its order changed.
  function show(text) {
    const made = new DOMParser().parseFromString(text, "text/html");
    const whole = made.getElementById("fleet");
    const held = document.activeElement && document.activeElement.id;
    if (whole) {
      fleet().replaceWith(document.adoptNode(whole));
    } else {
      const changes = made.getElementById("fleet-changes");
      if (!changes) return;
      fleet().dataset.state = changes.dataset.state;
      const summary = changes.querySelector("#summary");
      const shown = document.querySelector("#fleet #summary");
      if (shown.textContent !== summary.textContent) shown.replaceWith(document.adoptNode(summary));
      for (const glyph of [...changes.querySelectorAll("a.g")]) {
        const old = document.getElementById(glyph.id);
        if (old) old.replaceWith(document.adoptNode(glyph));
      }
    }
    rove();
    const again = held && document.getElementById(held);
    if (again && again.classList.contains("g")) again.focus({ preventScroll: true });
  }

  // A part of a page that is the same but for its values, as the server makes it now.
  async function renew(part) {
    const text = await ask(location.href);
    const made = new DOMParser().parseFromString(text, "text/html").getElementById(part.id);
    if (!made || !part.isConnected || made.innerHTML === written) return;
    // What the reader is in the middle of stays: the focus, text that is selected, a description under the pointer.
    const selected = document.getSelection();
    if (part.contains(document.activeElement) || part.querySelector("svg:hover, [title]:hover")) return;
    if (!selected.isCollapsed && part.contains(selected.anchorNode)) return;
    written = made.innerHTML;
    const settle = settled(part);
    part.replaceWith(document.adoptNode(made));
    settle(made);
  }

  // What the reader opened and scrolled, to do the same with the part that comes instead.
  function settled(part) {
    const title = (each) => each.querySelector("summary").textContent;
    const open = new Map([...part.querySelectorAll("details")].map((each) => [title(each), each.open]));
    const across = new Map([...part.querySelectorAll(".scroll")].map((each) => [each.getAttribute("aria-label"), each.scrollLeft]));
    return (made) => {
      for (const each of made.querySelectorAll("details")) each.open = open.get(title(each)) ?? each.open;
      for (const each of made.querySelectorAll(".scroll")) each.scrollLeft = across.get(each.getAttribute("aria-label")) ?? 0;
    };
  }

  async function follow() {
    const part = document.querySelector("[data-follow]");
    const begun = performance.now();
    timer = 0;
    if (document.visibilityState === "visible" && (fleet() || part)) {
      const address = new URL(location.href);
      address.hash = "";
      const state = fleet() ? fleet().dataset.state : "";
      address.searchParams.set("since", state);
      try {
        if (part) {
          await renew(part);
        } else {
          const text = await ask(address);
          // The reader may have chosen another list meanwhile.
          if (text && fleet().dataset.state === state) show(text);
        }
        failures = 0;
        lost("");
      } catch (problem) {
        failures += 1;
        const why = problem instanceof TypeError || problem.name === "TimeoutError" ? "The server does not answer." : problem.message;
        lost(`${why} What you see is from before.`);
      }
    }
    const long = part ? Math.min(SHARE * (performance.now() - begun), SELDOMEST) : 0;
    timer = setTimeout(follow, failures ? Math.min(EVERY * 2 ** failures, 16000) : Math.max(EVERY, long));
  }

  // One glyph takes part in the order of the Tab key; arrows move among them.
  function rove() {
    const all = document.querySelectorAll("#fleet a.g");
    let first = true;
    for (const each of all) { if (!first) each.tabIndex = -1; first = false; }
  }

  function neighbour(from, key) {
    const all = [...document.querySelectorAll("#fleet a.g")];
    const place = all.indexOf(from);
    if (key === "ArrowRight") return all[place + 1];
    if (key === "ArrowLeft") return all[place - 1];
    if (key === "Home") return all[0];
    if (key === "End") return all[all.length - 1];
    const here = from.getBoundingClientRect();
    const step = key === "ArrowDown" ? 1 : -1;
    for (let each = place + step; all[each]; each += step) {
      const there = all[each].getBoundingClientRect();
      if (Math.abs(there.top - here.top) > 4 && (there.left - here.left) * step >= -4) return all[each];
    }
    return step > 0 ? all[all.length - 1] : all[0];
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key === "/" && !typing) {
      const search = document.querySelector("[data-key='/']");
      if (search) { search.focus(); event.preventDefault(); }
      return;
    }
    const glyph = event.target.closest("a.g");
    if (glyph && /^(Arrow|Home$|End$)/.test(event.key)) {
      const next = neighbour(glyph, event.key);
      if (next) { glyph.tabIndex = -1; next.tabIndex = 0; next.focus(); }
      event.preventDefault();
    }
  });

  function hint(event) {
    const line = document.getElementById("hint");
    const glyph = event.target.closest && event.target.closest("a.g");
    if (!line) return;
    line.hidden = !glyph;
    if (glyph) line.textContent = glyph.getAttribute("aria-label");
  }
  document.addEventListener("pointerover", hint);
  document.addEventListener("focusin", hint);
  document.addEventListener("htmx:after:swap", rove);

  const clock = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
  for (const form of document.querySelectorAll("[data-submit-on-change]")) {
    const slider = form.querySelector("input[type=range]");
    let soon = 0;
    slider.addEventListener("input", () => { form.querySelector("output").value = clock(slider.value); });
    // A key that is held down is one change, and the next page goes on where the keys were.
    slider.addEventListener("change", () => {
      clearTimeout(soon);
      soon = setTimeout(() => { sessionStorage.setItem(SLIDING, "yes"); form.requestSubmit(); }, PAUSE);
    });
    if (sessionStorage.getItem(SLIDING)) slider.focus({ preventScroll: true });
    sessionStorage.removeItem(SLIDING);
  }

  if (fleet()) rove();
  const followed = document.querySelector("#fleet, [data-follow]");
  if (document.body.dataset.live === "yes" && followed) {
    written = followed.innerHTML;
    timer = setTimeout(follow, EVERY);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState !== "visible" || !timer) return;
      clearTimeout(timer);
      follow();
    });
  }
})();
