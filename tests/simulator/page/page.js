// The chat page: who one is, where one writes, and the conversation as it happens.
//
// News only say that something changed; the conversation is then read anew, and only the messages
// that differ are drawn again. So a lost event costs nothing that the next one does not repair.

import { ask, listen } from "./api.js";
import { element, messageElement } from "./message.js";

const $ = (id) => document.getElementById(id);
const TYPING_MS = 5_000;
const TOAST_MS = 4_000;

const world = { bots: [], users: [], chats: [] };
const drawn = new Map();
const unread = new Set();
let me = Number(remembered("me")) || null;
let place = null; // { bot, chat }: chat is null in private
let talk = null;
let about = null; // { kind: "reply" | "edit", message }
let skewMs = 0;
let typingUntilMs = 0;
let online = true;
let hindrance = "";
let reading = false;
let stale = false;

// What the browser remembers, if it may.

function remembered(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function remember(name, value) {
  try { localStorage.setItem(name, value); } catch { /* a private window forgets */ }
}

// Reading the world

async function readWorld() {
  Object.assign(world, await ask("people"));
  world.users = world.users.filter((user) => !user.deactivated);
  if (!world.users.some((user) => user.id === me)) me = world.users[0]?.id ?? null;
  drawPeople();
  drawPlaces();
  if (me === null) askWho();
}

async function readTalk() {
  if (reading) { stale = true; return; }
  if (me === null || place === null) return;
  reading = true;
  try {
    do {
      stale = false;
      const [asked, chat] = [place, chatId()];
      const told = await ask("conversation", { bot: asked.bot, chat });
      if (asked !== place || chat !== chatId()) { stale = true; continue; }
      talk = told;
      skewMs = talk.now_ms - Date.now();
      drawTalk();
    } while (stale);
  } catch (trouble) {
    toast(trouble.message);
  } finally {
    reading = false;
  }
}

const chatId = () => place.chat ?? me;
const botName = () => world.bots.find((bot) => bot.id === place?.bot)?.first_name ?? "the bot";

// People and places

function drawPeople() {
  $("people").replaceChildren(...world.users.map((user) => {
    const initial = element("span", "avatar", [...user.first_name][0] ?? "?");
    initial.style.setProperty("--hue", String((user.id * 47) % 360));
    initial.setAttribute("aria-hidden", "true");
    const dot = unread.has(user.id) ? element("span", "dot") : null;
    if (dot) dot.setAttribute("aria-label", "new messages");
    const button = element("button", "person", initial, element("span", "", user.first_name), dot);
    button.type = "button";
    button.setAttribute("aria-pressed", String(user.id === me));
    button.addEventListener("click", () => be(user.id));
    return element("li", "", button);
  }));
  $("people").querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function be(user) {
  me = user;
  remember("me", String(user));
  unread.delete(user);
  forget();
  drawPeople();
  drawPlaces();
  $("text").focus();
}

function drawPlaces() {
  const groups = world.chats.filter((chat) => chat.members.includes(me));
  const options = [
    ...world.bots.map((bot) => [`${bot.first_name} (@${bot.username})`, { bot: bot.id, chat: null }]),
    ...groups.map((chat) => [
      chat.title,
      { bot: world.bots.find((bot) => chat.members.includes(bot.id))?.id ?? world.bots[0]?.id, chat: chat.id },
    ]),
  ].filter(([, where]) => where.bot !== undefined);
  const kept = JSON.stringify(place);
  $("place").replaceChildren(...options.map(([name, where]) => {
    const option = element("option", "", name);
    option.value = JSON.stringify(where);
    option.selected = option.value === kept;
    return option;
  }));
  $("place").disabled = options.length === 0;
  go(options.length ? JSON.parse($("place").value) : null);
}

function go(where) {
  if (JSON.stringify(where) !== JSON.stringify(place)) {
    place = where;
    forget();
  }
  $("composer").hidden = place === null;
  if (place === null) {
    $("welcome").hidden = false;
    $("start").hidden = true;
    $("welcome-text").textContent = "No bot is here yet.";
  }
  readTalk();
}

function forget() {
  drawn.clear();
  $("messages").replaceChildren();
  talk = null;
  typingUntilMs = 0;
  hindrance = "";
  setAbout(null);
}

// The conversation

function drawTalk() {
  const list = $("messages");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const known = new Map(talk.messages.map((message) => [message.message_id, message]));
  const busy = new Set(talk.waiting
    .filter((press) => press.user_id === me)
    .map((press) => `${press.message_id}:${press.data}`));
  let grew = false;
  for (const message of talk.messages) {
    const quoted = known.get(message.reply_to);
    const keys = [...busy].filter((key) => key.startsWith(`${message.message_id}:`));
    const look = JSON.stringify([message, quoted?.text, keys]);
    const before = drawn.get(message.message_id);
    if (before?.look === look) continue;
    const item = messageElement(message, {
      own: me, quoted, waiting: busy, group: place.chat !== null, on: acts,
    });
    if (before) {
      if (!before.item.classList.contains("deleted") && message.deleted) item.classList.add("fresh");
      const focused = before.item.contains(document.activeElement);
      before.item.replaceWith(item);
      if (focused) item.querySelector("button, a")?.focus({ preventScroll: true });
    } else {
      if (drawn.size) item.classList.add("fresh");
      list.append(item);
      grew = true;
      if (message.from_bot) typingUntilMs = 0;
    }
    drawn.set(message.message_id, { look, item });
  }
  if (grew && atEnd) list.scrollTop = list.scrollHeight;
  $("welcome").hidden = talk.messages.length > 0;
  $("start").hidden = place.chat !== null;
  $("welcome-text").textContent = place.chat === null
    ? `Nothing has been said yet. Press Start to meet ${botName()}.`
    : "Nothing has been said here yet.";
  $("block").hidden = place.chat !== null || talk.messages.length === 0;
  $("block").textContent = talk.blocked ? "Unblock" : "Block";
  tick();
}

// What hinders, counted down

function tick() {
  const nowMs = Date.now() + skewMs;
  const typing = typingUntilMs > nowMs;
  $("typing").textContent = typing ? `${botName()} is typing` : "";
  $("typing").classList.toggle("busy", typing);
  const words = bannerWords(nowMs);
  if ($("banner").textContent !== words) $("banner").textContent = words;
  $("banner").hidden = words === "";
  // A button that nobody answered stops spinning by itself.
  if (talk?.waiting.some((press) => press.until_ms < nowMs)) readTalk();
}

function bannerWords(nowMs) {
  if (!online) return "The simulator cannot be reached. Trying again…";
  if (!talk) return "";
  if (talk.blocked) return `You have blocked ${botName()}. Writing unblocks it.`;
  const leftS = Math.ceil(((talk.flood_until_ms ?? 0) - nowMs) / 1000);
  if (leftS > 0) return `Flood: Telegram is holding this chat for ${duration(leftS)}.`;
  if (hindrance && talk.webhook.pending_update_count > 0) {
    return `${botName()}'s webhook does not take updates (${hindrance}). Telegram tries again.`;
  }
  return "";
}

function duration(seconds) {
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5400 ? `${Math.ceil(seconds / 60)} min` : `${Math.ceil(seconds / 3600)} h`;
}

// Acts

const acts = {
  command: (text) => say(text),
  press: (message, data) => attempt("presses", { user: me, message_id: message.message_id, data }),
  reply: (message) => setAbout({ kind: "reply", message }),
  edit: (message) => setAbout({ kind: "edit", message }),
  remove: (message) => attempt("deletes", { user: me, message_id: message.message_id }),
};

async function attempt(verb, words) {
  try {
    return await ask(verb, { ...words, bot: place.bot, chat: place.chat });
  } catch (trouble) {
    toast(trouble.message);
    return null;
  }
}

async function say(text) {
  const editing = about?.kind === "edit" ? about.message.message_id : null;
  const told = editing === null
    ? await attempt("says", { user: me, text, reply_to: about?.message.message_id ?? null })
    : await attempt("edits", { user: me, text, message_id: editing });
  if (told === null) return false;
  setAbout(null);
  $("messages").scrollTop = $("messages").scrollHeight;
  return true;
}

function setAbout(next) {
  const wasEditing = about?.kind === "edit";
  about = next;
  $("about").hidden = about === null;
  if (about === null) {
    if (wasEditing) setText("");
    return;
  }
  const name = about.kind === "edit" ? "Editing" : `Reply to ${about.message.from_name}`;
  $("about-text").textContent = `${name}: ${about.message.text}`;
  if (about.kind === "edit") setText(about.message.text);
  $("text").focus();
}

function setText(text) {
  $("text").value = text;
  grow();
}

function grow() {
  const box = $("text");
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 160)}px`;
}

// Answers and news

let toastTimer = 0;

function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, TOAST_MS);
}

function answered(news) {
  if (news.user_id !== me || !news.text) return;
  if (!news.show_alert) {
    toast(news.text);
    return;
  }
  $("alert-text").textContent = news.text;
  if (!$("alert").open) $("alert").showModal();
}

function onNews(news) {
  if (news.kind === "people") { readWorld(); return; }
  const here = place !== null && news.bot === place.bot && (news.chat === chatId() || news.chat === null);
  if (news.kind === "answered" && here) answered(news);
  if (news.kind === "action" && here) {
    typingUntilMs = Date.now() + skewMs + TYPING_MS;
    tick();
    return;
  }
  if (news.kind === "delivery" && here) hindrance = news.error ?? "";
  if (here) readTalk();
  else if (news.kind === "message" && world.users.some((user) => user.id === news.chat)) {
    unread.add(news.chat);
    drawPeople();
  } else if (news.kind === "message") readWorld();
}

// People join

function askWho() {
  $("person-cancel").hidden = me === null;
  if (!$("person").open) $("person").showModal();
  $("name").focus();
}

$("new-person").addEventListener("click", askWho);
$("person-cancel").addEventListener("click", () => $("person").close());
$("person").addEventListener("cancel", (event) => { if (me === null) event.preventDefault(); });
$("person-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  if (!name) return;
  try {
    const user = await ask("add_user", { first_name: name });
    $("name").value = "";
    $("person").close();
    me = user.id;
    await readWorld();
    be(user.id);
  } catch (trouble) {
    toast(trouble.message);
  }
});

// The composer

$("composer").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (text && await say(text)) setText("");
  $("text").focus();
});
$("text").addEventListener("input", grow);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
  if (event.key === "Escape") setAbout(null);
});
$("about-cancel").addEventListener("click", () => setAbout(null));
$("start").addEventListener("click", () => say("/start"));
$("place").addEventListener("change", () => go(JSON.parse($("place").value)));
$("block").addEventListener("click", async () => {
  await ask(talk.blocked ? "unblocks" : "blocks", { user: me, bot: place.bot }).catch((trouble) =>
    toast(trouble.message));
  readTalk();
});

listen(onNews, (isOnline) => {
  if (isOnline) readWorld().catch((trouble) => toast(trouble.message));
  online = isOnline;
  tick();
});
setInterval(tick, 500);
