// Keeps an open page up to date. The server says that something changed; the page is fetched anew and only what
// differs is put in its place, so that focus, scrolling, what was typed and what was opened stay as they are.
"use strict";

(() => {
  const FASTEST_MS = 1000; // between two fetches; three times as long as a fetch took, where that is longer
  const FIRST_RETRY_MS = 1000;
  const LAST_RETRY_MS = 30000;
  const HIDDEN_MS = 5000; // a page that nobody sees gives its connection back

  const main = document.getElementById("main");
  const state = document.getElementById("live-state");
  const told = document.getElementById("live-told");
  if (!main || !main.dataset.events || !window.EventSource) return;

  let stream = null;
  let retry = FIRST_RETRY_MS;
  let timer = 0;
  let again = 0;
  let missed = false; // a fetch that was due while there was no connection
  let fetching = false;
  let stale = false;
  let paused = false;

  const pause = document.createElement("button");
  pause.type = "button";
  pause.id = "live-pause";
  pause.textContent = "Pause updates";
  pause.setAttribute("aria-pressed", "false");
  document.getElementById("live").append(pause);

  function show(text, connected) {
    if (state.textContent !== text) state.textContent = text;
    document.documentElement.dataset.live = connected ? "on" : "off";
  }

  function say(text) {
    if (told.textContent !== text) told.textContent = text;
  }

  // --- the stream ---------------------------------------------------------------------------------

  function connect() {
    clearTimeout(timer);
    if (paused || document.hidden || stream || !main.dataset.events) return;
    stream = new EventSource(main.dataset.events);
    stream.addEventListener("open", () => {
      if (state.textContent.startsWith("Not connected")) say("Connected again");
      retry = FIRST_RETRY_MS;
      show("Live", true);
      if (missed) refresh();
    });
    stream.addEventListener("change", () => refresh());
    stream.addEventListener("error", () => lost());
  }

  function close() {
    clearTimeout(timer);
    if (stream) stream.close();
    stream = null;
  }

  function over() {
    close();
    show("Gone", false);
    say("This run is not here any more");
  }

  function lost() {
    close();
    if (paused || document.hidden || !main.dataset.events) return;
    show("Not connected", false);
    say("Not connected: the server does not answer");
    timer = setTimeout(connect, retry * (0.75 + Math.random() / 2));
    retry = Math.min(2 * retry, LAST_RETRY_MS);
  }

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) {
      close();
      show("Paused", false);
    } else {
      connect();
    }
  });

  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(close, HIDDEN_MS);
    else connect();
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", connect);

  // --- the page -----------------------------------------------------------------------------------

  async function refresh() {
    if (fetching) {
      stale = true;
      return;
    }
    fetching = true;
    missed = false;
    const start = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected) {
        location.reload(); // the login is over
        return;
      }
      if (answer.status >= 500) throw new Error("the server has a fault");
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (fresh && !paused) {
        document.title = page.title;
        swap(fresh);
        if (!main.dataset.events) over();
        later();
      }
    } catch {
      missed = true;
      lost();
    }
    const took = performance.now() - start;
    setTimeout(() => {
      fetching = false;
      if (stale) {
        stale = false;
        refresh();
      }
    }, Math.max(FASTEST_MS, 3 * took));
  }

  // The server may show a part that was made before the last changes, and says from when on it has a newer one.
  function later() {
    clearTimeout(again);
    if (main.dataset.again) again = setTimeout(renew, +main.dataset.again);
  }

  function renew() {
    if (stream) refresh();
    else missed = true;
  }

  function swap(fresh) {
    const focused = document.activeElement;
    const before = main.dataset.told;
    const seen = anchors();
    morph(main, fresh);
    const kept = seen.find(({ element }) => element.isConnected);
    if (kept) scrollBy(0, kept.element.getBoundingClientRect().top - kept.top);
    if (focused && focused !== document.activeElement && focused !== document.body) {
      (focused.isConnected ? focused : main).focus({ preventScroll: true });
    }
    if (main.dataset.told !== before) say(main.dataset.told || "");
  }

  // What stands at the top of the window, and all around it, from the inside out: it stays where it is, though
  // something grows above it. Not where the page is at its beginning, where what is new is looked for.
  function anchors() {
    const found = [];
    for (let y = 4; scrollY > 0 && y < innerHeight && !found.length; y += 24) {
      let element = document.elementFromPoint(innerWidth / 2, y);
      for (; element && element !== main && main.contains(element); element = element.parentElement) {
        found.push({ element, top: element.getBoundingClientRect().top });
      }
    }
    return found;
  }

  // Makes `old` like `fresh`, keeping every element of `old` that has a counterpart: the one of the same id, else
  // the next of the same name without an id.
  function morph(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    attributes(old, fresh);
    const named = new Map();
    for (const child of old.children) if (child.id) named.set(child.id, child);
    const kept = new Set();
    for (const child of fresh.children) if (child.id) kept.add(child.id);
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      while (at && at.id && !kept.has(at.id)) at = drop(at);
      const match = child.id ? named.get(child.id) : like(at, child) ? at : null;
      if (!match || match.nodeName !== child.nodeName) {
        old.insertBefore(document.importNode(child, true), at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else if (old.moveBefore) old.moveBefore(match, at);
      else old.insertBefore(match, at);
      if (match.nodeType === Node.ELEMENT_NODE) morph(match, child);
      else if (match.nodeValue !== child.nodeValue) match.nodeValue = child.nodeValue;
    }
    while (at) at = drop(at);
  }

  function like(old, fresh) {
    return old && !old.id && old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName;
  }

  function drop(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  function attributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !theirs(old, name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && !theirs(old, name)) old.setAttribute(name, value);
    }
  }

  // What the reader may have changed.
  function theirs(element, name) {
    return (
      (element.nodeName === "DETAILS" && name === "open") ||
      (element.nodeName === "INPUT" && (name === "value" || name === "checked")) ||
      (element.nodeName === "OPTION" && name === "selected")
    );
  }

  connect();
  later();
})();
