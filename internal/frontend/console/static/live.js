// What a page does beyond its forms and links: it asks for itself again when
// something changed, keeps ages true, and remembers in this origin alone where
// deciding was unlocked. A page without this script lacks nothing else.
"use strict";
(() => {
  const at = document.body.dataset.at || "";
  const live = () => document.getElementById("live");
  const stale = document.getElementById("stale");
  document.getElementById("again").href = location.href;

  // A browser gives storage to one port of this machine only, unlike cookies.
  const store = {
    get: () => { try { return localStorage.getItem("holdfast-area"); } catch { return null; } },
    set: (v) => { try { v ? localStorage.setItem("holdfast-area", v) : localStorage.removeItem("holdfast-area"); } catch { /* none */ } },
  };
  if (at) {
    store.set(at);
  } else if (location.pathname.startsWith("/k/")) {
    store.set("");
  } else {
    offer();
  }

  function offer() {
    const form = document.querySelector("[data-unlock]");
    const area = store.get();
    if (!form || !area || !/^\/k\/[\w-]+$/.test(area)) return;
    const p = document.createElement("p"), a = document.createElement("a");
    a.href = area + location.pathname + location.search;
    a.textContent = "Deciding was unlocked in this browser: go on there";
    p.append(a);
    form.before(p);
  }

  // Somebody is typing, or has typed and not sent.
  function busy() {
    for (const f of live().querySelectorAll("input:not([type=hidden]), textarea, select")) {
      if (f === document.activeElement || (f.type === "checkbox" ? f.checked !== f.defaultChecked : "defaultValue" in f && f.value !== f.defaultValue)) return true;
    }
    return false;
  }

  // What a page says, but for how long ago.
  function says(e) {
    const c = e.cloneNode(true);
    for (const t of c.querySelectorAll("[data-age], [data-left]")) t.textContent = "";
    return c.innerHTML;
  }

  const nameOf = (e) => e.id || e.getAttribute("href") || "";

  async function again() {
    let doc;
    try {
      const r = await fetch(location.href, { headers: { "Holdfast-Live": "1" }, credentials: "same-origin" });
      if (r.status === 401) { location.reload(); return; }
      doc = new DOMParser().parseFromString(await r.text(), "text/html");
    } catch { return; }
    const now = live(), next = doc.getElementById("live");
    if (!next || says(next) === says(now)) return;
    // What is being decided on is never exchanged under somebody's hand.
    if (busy() || (now.dataset.same || "") !== (next.dataset.same || "") || (doc.body.dataset.at || "") !== at) {
      stale.hidden = false;
      return;
    }
    const held = now.contains(document.activeElement) ? nameOf(document.activeElement) : "";
    now.replaceWith(document.importNode(next, true));
    if (held) {
      for (const e of live().querySelectorAll("a, button, [tabindex]")) if (nameOf(e) === held) { e.focus({ preventScroll: true }); break; }
    }
    if (!at) offer();
    if (document.title !== doc.title) {
      document.title = doc.title;
      document.getElementById("said").textContent = doc.title;
    }
  }

  let due = 0;
  const soon = () => { clearTimeout(due); due = setTimeout(again, 100); };
  const source = new EventSource("/events");
  source.addEventListener("changed", soon);
  // What changed before the stream was there, it does not tell.
  source.addEventListener("open", soon);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });

  function age(ms) {
    const s = Math.max(0, Math.round(ms / 1000));
    if (s < 1) return "now";
    if (s < 60) return s + " s ago";
    if (s < 3600) return Math.floor(s / 60) + " min ago";
    if (s < 48 * 3600) return Math.floor(s / 3600) + " h " + String(Math.floor(s / 60) % 60).padStart(2, "0") + " min ago";
    return Math.floor(s / 86400) + " days ago";
  }
  setInterval(() => {
    for (const t of document.querySelectorAll("time[data-age]")) t.textContent = age(Date.now() - Date.parse(t.dateTime));
  }, 10000);
})();
