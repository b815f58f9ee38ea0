// One message as an element. Texts become text nodes only; nothing is ever parsed as HTML.

const TAGS = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  code: "code",
  pre: "pre",
  blockquote: "blockquote",
  expandable_blockquote: "blockquote",
};
const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"]);
const SAFE = /^(https?|tg|mailto|tel):/i;

export function element(tag, classes = "", ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  made.append(...children.filter((child) => child !== null));
  return made;
}

// Entity offsets are UTF-16 units, which is what JavaScript counts in.
function formatted(text, entities, onCommand) {
  const made = document.createDocumentFragment();
  let at = 0;
  const outer = entities.filter((entity, index) => !entities.slice(0, index).some((other) =>
    other.offset <= entity.offset && entity.offset + entity.length <= other.offset + other.length));
  for (const entity of outer) {
    if (entity.offset < at) continue;
    const end = entity.offset + entity.length;
    made.append(text.slice(at, entity.offset));
    const inner = entities
      .filter((other) => other !== entity && other.offset >= entity.offset &&
        other.offset + other.length <= end)
      .map((other) => ({ ...other, offset: other.offset - entity.offset }));
    made.append(marked(entity, text.slice(entity.offset, end), inner, onCommand));
    // A block ends its line by itself.
    at = BLOCKS.has(entity.type) && text[end] === "\n" ? end + 1 : end;
  }
  made.append(text.slice(at));
  return made;
}

function marked(entity, text, inner, onCommand) {
  const content = formatted(text, inner, onCommand);
  if (entity.type === "bot_command") {
    const command = element("button", "command", content);
    command.type = "button";
    command.addEventListener("click", () => onCommand(text));
    return command;
  }
  if (entity.type === "spoiler") {
    const spoiler = element("button", "spoiler", content);
    spoiler.type = "button";
    spoiler.title = "Spoiler: press to see";
    spoiler.addEventListener("click", () => spoiler.classList.add("seen"));
    return spoiler;
  }
  const address = entity.type === "url" ? text : entity.url;
  if (address && SAFE.test(address)) {
    const link = element("a", "", content);
    link.href = address;
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
    return link;
  }
  const tag = TAGS[entity.type];
  return tag ? element(tag, "", content) : content;
}

function clock(seconds) {
  const time = element("time");
  const date = new Date(seconds * 1000);
  time.dateTime = date.toISOString();
  time.title = date.toLocaleString();
  time.append(date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }));
  return time;
}

function service(extra) {
  if (extra.migrate_to_chat_id) return "This group became a supergroup.";
  if (extra.migrate_from_chat_id) return "This supergroup was a group before.";
  const kind = Object.keys(extra).find((name) => name !== "quote");
  return kind ? `(${kind.replaceAll("_", " ")})` : "";
}

function quote(message, quoted) {
  if (message.reply_to === null) return null;
  const told = message.extra.quote?.text ?? quoted?.text ?? "";
  const from = quoted ? quoted.from_name : "";
  const link = element("a", "quote", element("strong", "", from || "Reply"), element("span", "", told));
  link.href = `#m${message.reply_to}`;
  return link;
}

function state(message, isOwn) {
  const parts = [clock(message.date_s)];
  if (message.edit_date_s !== null) {
    const edited = element("span", "edited", "edited");
    edited.title = new Date(message.edit_date_s * 1000).toLocaleString();
    parts.unshift(edited);
  }
  if (isOwn) {
    const tick = element("span", "tick", message.delivered ? "✓✓" : "✓");
    tick.title = message.delivered ? "The bot has it" : "Waiting for the bot";
    const spoken = element("span", "visually-hidden", tick.title);
    tick.setAttribute("aria-hidden", "true");
    parts.push(tick, spoken);
  }
  return element("footer", "", ...parts);
}

function keyboard(message, waiting, onPress) {
  if (!message.buttons.length) return null;
  const rows = message.buttons.map((row) => element("div", "keys-row", ...row.map((button) => {
    if (button.url && SAFE.test(button.url)) {
      const link = element("a", "key", button.text, " ↗");
      link.href = button.url;
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
      return link;
    }
    const key = element("button", "key", button.text);
    key.type = "button";
    const busy = waiting.has(`${message.message_id}:${button.callback_data}`);
    key.disabled = busy || button.callback_data === undefined;
    key.setAttribute("aria-busy", String(busy));
    key.addEventListener("click", () => onPress(message, button.callback_data));
    return key;
  })));
  return element("div", "keys", ...rows);
}

function actions(message, isOwn, on) {
  const offered = [["Reply", on.reply]];
  if (isOwn) offered.push(["Edit", on.edit], ["Delete", on.remove]);
  return element("div", "actions", ...offered.map(([name, act]) => {
    const button = element("button", "quiet", name);
    button.type = "button";
    button.addEventListener("click", () => act(message));
    return button;
  }));
}

// `on`: command, press, reply, edit, remove. `waiting`: presses without an answer yet.
export function messageElement(message, { own, quoted, waiting, group, on }) {
  const isOwn = message.from_id === own;
  const item = element("li", "message");
  item.id = `m${message.message_id}`;
  // Focus by touch shows what can be done with a message.
  item.tabIndex = -1;
  item.dataset.from = message.from_bot ? "bot" : isOwn ? "me" : "person";
  if (message.deleted) {
    item.classList.add("deleted");
    item.append(element("p", "gone", "deleted message"));
    return item;
  }
  const words = service(message.extra);
  if (!message.text && words) {
    item.classList.add("service");
    item.append(element("p", "gone", words));
    return item;
  }
  const name = group && !isOwn ? element("strong", "from", message.from_name) : null;
  const body = element("div", "body", formatted(message.text, message.entities, on.command));
  item.append(
    element("div", "bubble", name, quote(message, quoted), body, state(message, isOwn)),
    ...[keyboard(message, waiting, on.press), actions(message, isOwn, on)].filter(Boolean),
  );
  return item;
}
