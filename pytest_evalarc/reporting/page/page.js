"use strict";
// Shows a trial when its link is followed. Foreign text becomes text and never markup: it enters
// the document through textContent alone.
(() => {
  const overview = document.getElementById("overview");
  const view = document.getElementById("trial");
  const title = document.title;
  const ids = Array.from(document.querySelectorAll("script.trial-data"), (data) => data.id);
  let scrolled = 0;

  const make = (name, css, text) => {
    const element = document.createElement(name);
    if (css) element.className = css;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const link = (text, address) => {
    const anchor = make("a", "", text);
    anchor.setAttribute("href", address);
    return anchor;
  };

  const facts = (rows) => {
    const list = make("dl", "facts");
    for (const [name, value] of rows) {
      const row = make("div");
      row.append(make("dt", "", name), make("dd", "", value));
      list.append(row);
    }
    return list;
  };

  const table = (caption, head, rows) => {
    const region = make("div", "scroll");
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", caption);
    region.tabIndex = 0;
    const found = make("table", "figures said-heads");
    found.append(make("caption", "unseen", caption));
    const heads = make("tr");
    for (const name of head) {
      const cell = make("th", "", name);
      cell.scope = "col";
      heads.append(cell);
    }
    found.createTHead().append(heads);
    const body = found.createTBody();
    for (const [first, ...others] of rows) {
      const row = make("tr");
      const cell = make("th", "", first);
      cell.scope = "row";
      row.append(cell, ...others.map((text) => make("td", "said", text)));
      body.append(row);
    }
    region.append(found);
    return region;
  };

  const said = (text, name) => {
    const block = make("pre", "", text);
    block.tabIndex = 0;
    block.setAttribute("role", "region");
    block.setAttribute("aria-label", name);
    return block;
  };

  const folded = (name, parts, isOpen) => {
    const details = make("details");
    details.open = Boolean(isOpen);
    details.append(make("summary", "", name), ...parts);
    return details;
  };

  const callOf = (call) => {
    const parts = [];
    if (call.arguments) parts.push(said(call.arguments, "arguments"));
    if (call.result) parts.push(said(call.result, "result"));
    if (call.turns.length) parts.push(turnsOf(call.turns));
    if (!parts.length) parts.push(make("p", "quiet", "Nothing more is known of this call."));
    const kind = call.kind === "skill" ? "skill load, " : "";
    const details = folded(`${call.name} (${kind}${call.ended})`, parts);
    details.classList.add("call", call.ended === "error" ? "failed" : "quietly");
    return details;
  };

  const turnsOf = (turns) => {
    const list = make("ol", "turns");
    for (const turn of turns) {
      const item = make("li", `turn ${turn.source}`);
      const about = [turn.source, turn.model, turn.at].filter(Boolean).join(", ");
      item.append(make("p", "speaker", about));
      if (turn.reasoning) item.append(folded("reasoning", [said(turn.reasoning, "reasoning")]));
      if (turn.text) item.append(make("p", "said", turn.text));
      item.append(...turn.calls.map(callOf));
      list.append(item);
    }
    return list;
  };

  const lineOf = (line) => {
    const words = { "+": "added", "-": "removed", "@": "place" };
    return make("span", words[line[0]] || "same", `${line}\n`);
  };

  const changeOf = (file) => {
    const parts = [];
    if (file.note) parts.push(make("p", "quiet", file.note));
    if (file.lines.length) {
      const block = said("", `changes of ${file.path}`);
      block.classList.add("diff");
      block.append(...file.lines.map(lineOf));
      parts.push(block);
    }
    return folded(`${file.path} (${file.word})`, parts, file.lines.length <= 200);
  };

  const listOf = (links) => {
    const list = make("ul");
    for (const [text, address] of links) {
      const item = make("li");
      item.append(link(text, address));
      list.append(item);
    }
    return list;
  };

  const blockOf = (block) => {
    const section = make("section");
    section.append(make("h3", "", block.heading));
    if (block.note) section.append(make("p", "quiet", block.note));
    if (block.facts && block.facts.length) section.append(facts(block.facts));
    if (block.rows && block.rows.length) {
      section.append(table(block.heading, block.head, block.rows));
    }
    if (block.turns) section.append(turnsOf(block.turns));
    if (block.files) section.append(...block.files.map(changeOf));
    for (const [name, text] of block.texts || []) section.append(folded(name, [said(text, name)]));
    if (block.links) section.append(listOf(block.links));
    return section;
  };

  const wayOf = (id) => {
    const way = make("nav", "way");
    way.setAttribute("aria-label", "Other trials");
    const at = ids.indexOf(id);
    way.append(link("Back to the overview", "#overview"));
    if (at > 0) way.append(link("Previous trial", `#${ids[at - 1]}`));
    if (at + 1 < ids.length) way.append(link("Next trial", `#${ids[at + 1]}`));
    return way;
  };

  const show = (id) => {
    const trial = JSON.parse(document.getElementById(id).textContent);
    const heading = make("h2", "", trial.title);
    heading.id = "trial-title";
    heading.tabIndex = -1;
    view.replaceChildren(wayOf(id), heading, ...trial.blocks.map(blockOf));
    if (!overview.hidden) scrolled = window.scrollY;
    overview.hidden = true;
    view.hidden = false;
    document.title = `${trial.title}: ${title}`;
    window.scrollTo(0, 0);
    heading.focus();
  };

  const leave = (id) => {
    if (view.hidden) return;
    view.hidden = true;
    view.replaceChildren();
    overview.hidden = false;
    document.title = title;
    const target = document.getElementById(id);
    if (target && id !== "overview") {
      target.scrollIntoView();
      return;
    }
    window.scrollTo(0, scrolled);
    const opener = Array.from(overview.querySelectorAll("a")).find((a) => a.hash === opened);
    if (opener) opener.focus();
  };

  let opened = "";
  const follow = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (ids.includes(id)) {
      show(id);
      opened = location.hash;
    } else {
      leave(id);
    }
  };
  window.addEventListener("hashchange", follow);
  follow();
})();
