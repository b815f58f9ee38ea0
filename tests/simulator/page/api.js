// The control interface as this page uses it: verbs by POST, news by server-sent events.

const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

export async function ask(verb, words = {}) {
  const response = await fetch(`/_sim/${verb}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify(words),
  });
  const told = await response.json();
  if (!response.ok) throw new Error(told.error ?? `${verb}: ${response.status}`);
  return told;
}

// Calls `onNews` with each event, and `onLine` with whether the simulator can be reached.
export function listen(onNews, onLine) {
  const events = new EventSource(`/_sim/events?token=${encodeURIComponent(token)}`);
  events.onopen = () => onLine(true);
  events.onerror = () => onLine(false);
  events.onmessage = (event) => onNews(JSON.parse(event.data));
}
