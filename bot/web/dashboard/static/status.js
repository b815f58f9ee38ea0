// Fetch the page again and take over what is new, as long as somebody looks at it.
"use strict";

const EVERY_MS = 2000;

async function refresh() {
  const stale = document.getElementById("stale");
  try {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of ["header time", "#house"]) {
      document.querySelector(part).replaceWith(page.querySelector(part));
    }
    stale.hidden = true;
  } catch {
    stale.hidden = false;
  }
}

setInterval(() => document.hidden || refresh(), EVERY_MS);
