/* Screens of the worker's page. All checks, the draw, storage and network are in device.mjs.
 *
 * Nodes with data-text show a message of the chosen language; nodes with data-when are shown if that value is set.
 * Text of a campaign enters the page through textContent only, in an element of its own, in quotes.
 */

import { Device, Refusal, channelOf, isCutLink, parseLink, questionOf, questionsOf, readLedger, readMessages, sumOfLines } from "./device.mjs";
import { sealBody } from "./hpke.mjs";

const MOST_BUTTONS = 12;
const PERCENT_OF_COUNT = 100 / 2 ** 48;
const UP = 1 + 1e-12;
const FOREIGN = ["detail", "operator", "title"];
const NO_ANSWER = { text: "answer.none" };
const isNumber = (text) => /^-?[0-9]+(\.[0-9]+)?$/.test(text);
const page = { device: null, texts: {}, values: {}, language: "en" };
const $ = (id) => document.getElementById(id);
const on = (id, event, action) => $(id).addEventListener(event, (details) => guard(() => action(details)));

/** Return a new node; the property `text` names a message. */
function element(tag, { text, ...properties } = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  if (text) node.dataset.text = text;
  node.append(...children);
  return node;
}

/** Return an element with words of others, in quotes; a plain number promises nothing and has none. */
const foreign = (tag, textContent, properties) =>
  element(tag, { className: isNumber(textContent) ? "" : "foreign", textContent, dir: "auto", ...properties });

/** Fill the texts of the page from the messages of the chosen language and the values of their {places}. */
function update(values = {}) {
  const filled = Object.assign(page.values, values);
  const numeral = (value) => value.toLocaleString(page.language, { maximumFractionDigits: 3 });
  const above = (value) => (value?.above ? `${page.texts[page.language]["promise.above"]} ${numeral(value.above)}` : value);
  const inText = (value) => (value?.day || value?.time ? inWords(value) : above(value));
  const asText = (value) => (typeof value === "number" ? numeral(value) : inText(value));
  for (const node of document.querySelectorAll("[data-text]")) {
    const fill = (place) => asText(node.places?.[place] ?? filled[place]);
    const quoted = (place) => foreign("bdi", fill(place), { className: "foreign" });
    const part = (text, index) => (index % 2 ? (FOREIGN.includes(text) ? quoted : fill)(text) : text);
    node.replaceChildren(...(page.texts[page.language][node.dataset.text] ?? "").split(/\{(\w+)\}/).map(part));
  }
  for (const node of document.querySelectorAll("[data-when]")) node.hidden = !filled[node.dataset.when];
  for (const node of document.querySelectorAll("[data-language]")) node.ariaPressed = node.lang === page.language;
  document.documentElement.lang = page.language;
}

/** Show one screen and move the focus to its heading. */
function show(screen, values) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== screen;
  update(values);
  $(`${screen}-heading`).focus();
}

/** Run an action; whatever stops it ends in one sentence for the worker. */
async function guard(action) {
  try {
    await action();
  } catch (error) {
    const drawn = Boolean(page.device?.record?.body);
    const sentence = error instanceof Refusal ? error.sentence : "browser";
    const kind = `refused.${drawn && sentence !== "receipt" ? "undelivered" : sentence}`;
    $("refused-sentence").dataset.text = kind in page.texts.en ? kind : "refused.campaign";
    const isDated = ["refused.early", "refused.closed"].includes(kind);
    const isElsewhere = ["refused.browser", "refused.insecure"].includes(kind) && page.values.isServed;
    const clock = { isDated, isClock: isDated && page.device.isClockOdd, now: localTime(Date.now()) };
    show("refused", { isOffline: false, detail: error.message, drawn, isElsewhere, ...clock });
  }
}

/** Return a place whose text is a time of this device, in the language of the page. */
const localTime = (time) => ({ time });

/** Return the days of a campaign, which are days in UTC, and the same times on the clock of this device. */
function daysOf({ opens, closes }) {
  const end = Date.parse(closes) + 86_400_000;
  return { opens: { day: opens }, closes: { day: closes }, start: localTime(Date.parse(opens)), end: localTime(end) };
}

/** Return a day or a time in words. */
function inWords({ day, time }) {
  const shown = day
    ? { dateStyle: "long", timeZone: "UTC" }
    : { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
  return new Intl.DateTimeFormat(page.language === "en" ? "en-GB" : page.language, shown).format(day ? Date.parse(day) : time);
}

/** Keep the language that the worker chose: in the browser, or for this visit where it has no such store. */
function keepLanguage(language) {
  page.chosen = language;
  try {
    localStorage.setItem("language", language);
  } catch {
    // Pages without this store work: it holds nothing else.
  }
}

/** Return the language that the worker chose, now or before. */
function chosenLanguage() {
  try {
    return page.chosen ?? localStorage.getItem("language");
  } catch {
    return page.chosen;
  }
}

/** Open a link or a record: store it, take it out of the address, verify everything, continue where the record is. */
async function openLink(link) {
  const { device } = page;
  show("loading");
  await device.takeLink(link);
  history.replaceState(device.key, "", location.href.split("#")[0]);
  if (device.record.state === "receipted") return show("done", { title: device.record.title });
  await device.verify();
  update(daysOf(device.campaign));
  if (!device.record.body) await device.checkDays();
  if (device.campaign.levels !== undefined && device.record.level === undefined) return showLevels(await showLedger());
  showCampaign();
  if (device.record.body) return finish();
  return device.record.state === "answering" ? showTasks() : show("intro");
}

/** Show the words of the campaign but its question, and its facts, on a screen. */
function showAbout(screen) {
  const { campaign, tasks } = page.device;
  const { title, consent, language: lang, min_reports: reports } = campaign;
  for (const [id, textContent] of Object.entries({ title, consent })) Object.assign($(id), { textContent, lang });
  $(`${screen}-about`).append($("about"));
  chooseLanguage(lang);
  const name = campaign.name.slice(0, 22).replace(/.{4}/g, "$& "); // 132 bits, for people to compare
  return { isCampaign: true, count: tasks.length, reports, name };
}

/** Show consent and levels of privacy, the first one chosen, before any question. */
function showLevels({ lines, limit, isOwn }) {
  const { campaign } = page.device;
  const option = (_, level) => {
    const epsilon = sumOfLines(page.device.newLines("", level));
    const input = element("input", { type: "radio", name: "level", value: String(level), checked: level === 0 });
    const after = sumOfLines([...lines, ...page.device.newLines("", level)]);
    const places = { number: level + 1, sure: percentSure(epsilon), epsilon, after };
    const over = isOwn ? "level.over" : "level.over.usual";
    const text = element("span", { text: after > limit ? over : "level.option", places });
    const weak = isWeak(places.sure) ? ["; ", element("strong", { className: "weak", text: "level.weak" })] : [];
    return element("label", { className: "option" }, input, element("span", {}, text, ...weak));
  };
  $("level-list").replaceChildren(...campaign.channels.map(option));
  show("level", { ...showAbout("level"), isAsked: false });
}

/** Choose the language of the page: the one that was chosen before, or that of the campaign, or English. */
function chooseLanguage(lang) {
  page.language = [chosenLanguage(), lang.slice(0, 2)].find((name) => name in page.texts) ?? "en";
}

function showCampaign() {
  const { campaign, record, tasks } = page.device;
  const { title, isProtected } = campaign;
  $("question").replaceChildren(...questionsOf(campaign).map((_, index) => questionText("p", index)));
  document.title = `“${title}”`;
  const channels = Array.from(new Set(tasks.map((task) => channelOf(campaign, record.slot, task, record.level))));
  const heading = (channel) => questionText("p", campaign.channels.indexOf(channel));
  const chances = (channel) => [...(campaign.questions ? [heading(channel)] : []), chancesTable(channel)];
  $("chances").replaceChildren(...channels.flatMap(chances));
  const lossOf = ({ ratio: [numerator, denominator] }) => sumOfLines([{ numerator, denominator, cells: 1 }]);
  const epsilon = Math.max(...channels.map(lossOf));
  const total = sumOfLines(page.device.newLines());
  const [factor, all] = [factorOf(epsilon), factorOf(total)];
  const [sure, allSure] = [percentSure(epsilon), percentSure(total)];
  const strength = { isHidden: !isWeak(allSure), isWeak: isWeak(allSure) };
  const promise = { epsilon, factor, total, all, sure, allSure, ...strength, isProtected, isPublic: !isProtected };
  const relay = { isRelayed: Boolean(campaign.relay), operator: campaign.relay?.operator ?? "" };
  const { levels, prior = "" } = campaign;
  const level = { isLevelled: levels !== undefined, level: record.level + 1, levels, prior, hasPrior: prior !== "" };
  update({ ...showAbout("intro"), isAsked: true, ...promise, ...relay, ...level });
}

/** Return a node with the text of a question, and with its number if there are several. */
function questionText(tag, index) {
  const [{ language: lang }, questions] = [page.device.campaign, questionsOf(page.device.campaign)];
  const places = { number: index + 1, of: questions.length };
  const number = element("span", { className: "small", text: "tasks.question", places });
  return element(tag, {}, ...(questions.length > 1 ? [number] : []), foreign("span", questions[index].text, { lang }));
}

/** Return the largest posterior probability, in percent rounded up, of one of two answers that were equally likely. */
function percentSure(epsilon) {
  const percent = Math.ceil((1000 * UP) / (1 + Math.exp(-epsilon))) / 10;
  return percent < 100 ? percent : { above: 99.9 };
}

/** Return whether a percentage is more than 99.9: little is hidden then, long before the usual limit of the ledger. */
const isWeak = (percent) => typeof percent !== "number";

/** Return the largest factor of odds, rounded up: with one decimal below a thousand, without from there on. */
function factorOf(epsilon) {
  const factor = Math.ceil(Math.exp(epsilon) * 10) / 10;
  return factor < 1000 ? factor : Math.ceil(factor);
}

/** Return the chances in percent, a row for each answer and a column for each report; names stand apart, by number. */
function chancesTable({ labels, isProtected, outputs, rows }) {
  const words = Array.from(new Set([...labels, ...outputs])).filter((name) => name !== "NULL" && !isNumber(name));
  const asShown = (name) => (isNumber(name) ? name : `#${words.indexOf(name) + 1}`);
  const heading = (scope) => (name) =>
    element("th", name === "NULL" ? { scope, ...NO_ANSWER } : { scope, textContent: asShown(name) });
  const percent = (entry) => element("td", { textContent: `${(entry * PERCENT_OF_COUNT).toFixed(1)} %` });
  const names = isProtected ? [...labels, "NULL"] : labels;
  const body = names.map((name, index) => element("tr", {}, heading("row")(name), ...rows[index].map(percent)));
  const head = element("tr", {}, element("th", { scope: "col", text: "intro.corner" }), ...outputs.map(heading("col")));
  const { language: lang } = page.device.campaign;
  const quoted = words.map((name) => element("li", {}, `${asShown(name)} `, foreign("span", name, { lang })));
  const listed = [element("p", { className: "small", text: "campaign.words" }), element("ul", { className: "words" }, ...quoted)];
  const table = element("div", { className: "scroll", tabIndex: 0 }, element("table", {}, head, ...body));
  return element("div", {}, table, ...(words.length ? listed : []));
}

const countAnswers = () => ({ given: Object.values(page.device.record.answers ?? {}).filter(Number.isInteger).length });

/** Show the tasks; of several questions those about one task together, each below its question. */
function showTasks() {
  const { campaign, tasks } = page.device;
  const nameOf = (task) => campaign.tasks[task].id;
  const places = new Map(tasks.map((task, index) => [nameOf(task), index]).reverse());
  const shown = Array.from(tasks).sort((one, other) => places.get(nameOf(one)) - places.get(nameOf(other)));
  const isFirst = (of, index) => campaign.questions && (index === 0 || of !== questionOf(campaign, shown[index - 1]));
  const heading = (of, index) => (isFirst(of, index) ? [questionText("h3", of)] : []);
  const fields = shown.flatMap((task, index) => [...heading(questionOf(campaign, task), index), taskField(task, index)]);
  $("task-list").replaceChildren(...fields);
  show("tasks", { ...countAnswers(), isAsked: !campaign.questions });
}

/** Return the form field of one task: radio buttons, or a menu if there are many labels. */
function taskField(task, index) {
  const { campaign, record } = page.device;
  const { text, picture } = campaign.tasks[task];
  const { labels: names } = channelOf(campaign, record.slot, task, record.level);
  const counter = element("span", { className: "small", text: "tasks.number", places: { index: index + 1 } });
  const { language: lang } = campaign;
  const legend = element("legend", { id: `legend-${task}` }, counter, foreign("span", text, { lang }));
  const choose = async ({ target }) => {
    await page.device.answer(task, target.value === "" ? undefined : Number(target.value));
    update(countAnswers());
  };
  const onchange = (event) => guard(() => choose(event));
  const chosen = String(record.answers?.[task] ?? "");
  const choices = [...names.map((name, code) => ({ value: String(code), name })), { value: "" }];
  const optionText = (name) => (name === undefined ? NO_ANSWER : { textContent: isNumber(name) ? name : `“${name}”` });
  const option = ({ value, name }) => element("option", { ...optionText(name), value, selected: value === chosen });
  const shown = (name) => (name === undefined ? element("span", NO_ANSWER) : foreign("span", name, { lang }));
  const radio = ({ value, name }) => {
    const input = element("input", { type: "radio", name: `task-${task}`, value, checked: value === chosen, onchange });
    return element("label", { className: "option" }, input, shown(name));
  };
  const isShort = names.every((name) => name.length <= 4);
  const short = names.every(isNumber) ? "options grid numbers" : "options grid";
  const input =
    names.length > MOST_BUTTONS
      ? element("select", { onchange }, ...choices.reverse().map(option))
      : element("div", { className: isShort ? short : "options" }, ...choices.map(radio));
  if (names.length > MOST_BUTTONS) input.setAttribute("aria-labelledby", legend.id);
  const shownFirst = [...linkOf(campaign, task), ...(picture ? [pictureOf(picture)] : [])];
  return element("fieldset", { className: "card" }, legend, ...shownFirst, input);
}

/** Return the link of a task, which the worker opens, and that its host sees that; nothing without one. */
function linkOf({ links = [] }, task) {
  const href = links[task];
  if (!href) return [];
  const secret = { target: "_blank", rel: "noopener noreferrer", referrerPolicy: "no-referrer" };
  const link = element("a", { href, ...secret, textContent: href });
  const note = element("span", { className: "small", text: "tasks.link", places: { host: href.split(/[/?#]+/)[1] } });
  return [element("p", { className: "judged" }, link, element("br"), note)];
}

function pictureOf(picture) {
  const image = element("img", { alt: `“${picture.alt}”` });
  guard(async () => {
    image.src = URL.createObjectURL(new Blob([await page.device.picture(picture)], { type: picture.type }));
  });
  return image;
}

async function showReview() {
  const { lines, limit, isOwn } = await showLedger();
  const after = sumOfLines([...lines, ...page.device.newLines()]);
  $("over").dataset.text = isOwn ? "review.over" : "review.over.usual";
  show("review", { after, isOver: after > limit, isLater: lines.length > 0 });
}

async function send() {
  show("sending");
  await page.device.draw();
  await showLedger();
  await finish();
}

/** Continue after the draw: send the stored bytes, or offer them as a file and as text. */
async function finish() {
  const { device } = page;
  if (!device.files) {
    show("sending");
    await device.deliver();
    return show("done", { title: device.record.title });
  }
  const text = device.reportFile();
  offerFile("report-link", text, `report-${device.record.slot}-${device.record.report.slice(0, 8)}.json`);
  $("report-text").value = text;
  return show("report");
}

function offerFile(id, text, download) {
  Object.assign($(id), { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download });
}

/** Show the ledger after a change of it, and return it. */
async function showLedger(change) {
  const { lines, limit, isOwn, text } = await page.device.ledger(change);
  const row = (host) => {
    const sum = String(sumOfLines(lines.filter((line) => line.host === host)));
    const name = element("th", { scope: "row", textContent: host });
    return element("tr", {}, name, element("td", { textContent: sum }));
  };
  $("ledger-lines").replaceChildren(...Array.from(new Set(lines.map(({ host }) => host)), row));
  offerFile("export", text, "crowdveil-ledger.json");
  $("limit").value = limit;
  $("ledger-heading").dataset.text = lines.length ? "ledger.heading" : "ledger.empty";
  update({ before: sumOfLines(lines), limit });
  return { lines, limit, isOwn };
}

/** Read texts and database; open the link of the address or the record of this tab, or ask for a link. */
async function begin() {
  const embedded = $("embedded") && JSON.parse($("embedded").textContent);
  page.texts = embedded?.messages ?? (await readMessages());
  const wished = [chosenLanguage(), navigator.language.slice(0, 2)];
  page.language = wished.find((language) => language in page.texts) ?? "en";
  update({ isFile: Boolean(embedded), isServed: !embedded });
  if (!isSecureContext) throw new Refusal("insecure");
  page.device = new Device(embedded?.files, (isConnected) => update({ isOffline: !isConnected }), sealBody);
  await page.device.openDatabase();
  await showLedger();
  const [name, slot] = history.state?.split(":") ?? [];
  const isGiven = location.hash.length > 1;
  const link = isGiven ? parseLink(location.hash) : name && { name, slot: Number(slot) };
  if (link) return openLink(link);
  const open = await page.device.openRecords();
  const button = (record) => {
    const onclick = () => guard(() => openLink(record));
    return element("button", { onclick }, foreign("span", record.title ?? record.name));
  };
  $("open-list").replaceChildren(...open.map(button));
  return show("welcome", { hasOpen: open.length > 0, ...(isGiven && badLink(location.hash)) });
}

/** Return the values of the sentence on a text that is no link, or a cut one. */
const badLink = (text) => ({ isBadLink: !isCutLink(text), isCut: isCutLink(text) });

on("link-form", "submit", (event) => {
  event.preventDefault();
  const link = parseLink($("link").value);
  return link ? openLink(link) : update(badLink($("link").value));
});
on("languages", "click", ({ target }) => {
  page.language = target.dataset.language ?? page.language;
  keepLanguage(page.language);
  update();
});
on("level-form", "submit", async (event) => {
  event.preventDefault();
  await page.device.choose(Number(new FormData(event.target).get("level")));
  showCampaign();
  show("intro");
});
for (const screen of ["level", "intro"]) {
  on(`${screen}-next`, "click", () => {
    $("about").scrollIntoView();
    $("about-heading").focus({ preventScroll: true });
  });
}
on("start", "click", async () => {
  await page.device.start();
  showTasks();
});
on("task-form", "submit", (event) => {
  event.preventDefault();
  return showReview();
});
on("back", "click", showTasks);
on("send", "click", send);
on("report-text", "focus", ({ target }) => target.select());
on("handed-in", "click", async () => {
  await page.device.finish();
  show("done", { title: page.device.record.title });
});
on("limit", "change", ({ target }) => showLedger({ limit: Math.max(0, target.valueAsNumber || 0) }));
on("import", "change", async ({ target }) => showLedger({ imported: readLedger(await target.files[0].text()) }));
addEventListener("hashchange", () => location.reload());
guard(begin);
