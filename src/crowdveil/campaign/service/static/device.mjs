/* Device of a worker, in one module without dependencies: all checks, the draw, the storage and the network.
 *
 * It checks the campaign and its channels, draws one random report from the exact integer channel, and sends it
 * until the service confirms it. Answers stay on this device and are deleted by the transaction that stores the report.
 * `page.mjs` shows the screens; it reaches storage and network through the class Device only.
 * Parts: bytes, canonical JSON, names, certificate, campaign, link, report, ledger, service, device.
 */

const DENOMINATOR = 2 ** 48;
const [WORD_BYTES, MAX_BYTES, MAX_LABELS, PART_SLOTS, USUAL_LIMIT] = [6, 2_000_000, 1024, 100, 10];
const [CLOCK_LIMIT, PERSIST_LIMIT, USUAL_DELAY] = [5_000, 2_000, 600_000];
const STORES = ["records", "ledger", "settings"];

/** A document or a reply breaks a rule; `defect` is the name of the rule, as in Python. */
export class Refusal extends Error {
  constructor(defect, detail = "", sentence = defect) {
    super(detail === "" ? defect : `${defect}: ${detail}`);
    Object.assign(this, { defect, sentence });
  }
}
function refuse(...reason) { throw new Refusal(...reason); }
const check = (condition, ...reason) => condition || refuse(...reason);

// Bytes ---------------------------------------------------------------------------------------------------------------
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
export const toBase64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const fromBase64url = (text) => fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
const toUtf8 = (text) => new TextEncoder().encode(text);
const fromUtf8 = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

// Canonical JSON ------------------------------------------------------------------------------------------------------
/** Return JSON without spaces, in ASCII, with the keys of each object in order. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const pairs = Object.keys(value).sort().map((key) => `${canonical(key)}:${canonical(value[key])}`);
    return `{${pairs.join(",")}}`;
  }
  const isUsual = (number) => Number.isSafeInteger(number) || (Math.abs(number) >= 1e-4 && Math.abs(number) < 2 ** 53);
  check(typeof value !== "number" || isUsual(value), "number", "beyond 2^53, or a fraction below 0.0001");
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escape);
}

/** Return the value of a text that is written again byte for byte: no repeated key, no 1.0, no integer beyond 2^53. */
export function parseCanonical(text) {
  try {
    const value = JSON.parse(text);
    check(canonical(value) === text, "not canonical", "the text differs from the canonical form of its value");
    return value;
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal("not json", error.message);
  }
}

const isText = (value) => typeof value === "string";
const isMatch = (value, pattern) => isText(value) && pattern.test(value);
const isInteger = (value, low, high) => Number.isSafeInteger(value) && value >= low && value <= high;
const isListOf = (value, test, length = value?.length) =>
  Array.isArray(value) && value.length === length && value.every((entry) => test(entry));
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const hasFields = (value, names, format) =>
  isObject(value) && Object.keys(value).sort().join(" ") === names && (!format || value.format === format);
const isHash = (value) => isMatch(value, /^[0-9a-f]{64}$/);
const dayOf = (time) => (Number.isFinite(time) ? new Date(time).toISOString().slice(0, 10) : "");

// Names ---------------------------------------------------------------------------------------------------------------
const EMPTY = /[^\S\ufeff]|[\x1c-\x1f\x85\u2800\ufffc\u{16fe4}\u{1d159}]/u;
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{16fe4}\u{1d159}]/u;

/** Return whether a character is visible, or a joiner or variation selector that spelling needs. */
function isPrintable(character, index, all) {
  const [before, after] = [all[index - 1] ?? "", all[index + 1] ?? ""];
  if (/[\ufe0e\ufe0f]/.test(character)) return /^\p{So}$/u.test(before);
  if (/[\u200c\u200d]/.test(character)) return /^[^\0-\x7f]{2}$/u.test(before + after);
  return !INVISIBLE.test(character);
}

/** Return whether a text is one line, printable, in normal form C, and without white space around it. */
const isName = (text, most = Infinity) =>
  isText(text) && text === text.trim().normalize("NFC") && /[\p{L}\p{N}\p{P}\p{S}]/u.test(text) &&
  Array.from(text).length <= most && Array.from(text).every(isPrintable);
const areLines = (text, most) => isText(text) && isName(text.replaceAll("\n", " "), most);

/** Check that names are printable and distinguishable. */
function checkNames(names) {
  const isEach = names.every((name) => isName(name)) && new Set(names.map(visible)).size === new Set(names).size;
  check(isEach, "text", "a name is not printable, or two look alike");
  check(new Set(names).size === names.length, "duplicate symbols", "a name is repeated");
}

const asSeen = (sign) => (EMPTY.test(sign) ? " " : INVISIBLE.test(sign) ? "" : sign);
/** Return the part of a name that a reader sees. */
const visible = (name) => Array.from(name, asSeen).join("").normalize("NFC").replace(/ +/g, " ").trim();
const areUnlike = (names) => new Set(names.map(visible)).size === names.length;

// Certificate of one channel ------------------------------------------------------------------------------------------
const NAME = "(randomized-response|laplace|one-layer|quantized-response|subset-selection|optimized-unary-encoding|piecewise|ogpm|square-wave|staircase|designed)";
const REAL_VALUED = "laplace, real-valued, binned \\(simulation only\\)";
const MARK = ", SIMULATION from seed (0|[1-9][0-9]*): no privacy|, LISTS FROM ANSWERS: no privacy";
const MECHANISM = new RegExp(`^(${REAL_VALUED}|${NAME}(\\+${NAME}){0,15})(${MARK})?$`);
const NO_PRIVACY = new RegExp(`: no privacy$|^${REAL_VALUED}`);

/** Return the points of a scale as text, computed in whole units of the last decimal digit. */
function gridNames({ low, high, step }) {
  const parts = [low, high, step].map((number) => /^(-?)(\d+)(?:\.(\d+))?$/.exec(JSON.stringify(number)));
  check(parts.every(Boolean), "alphabet", "a scale consists of three numbers of usual size");
  const digits = Math.max(...parts.map((part) => (part[3] ?? "").length));
  const inUnits = ([, sign, whole, rest = ""]) => BigInt(sign + whole + rest.padEnd(digits, "0"));
  const [first, last, spacing] = parts.map(inUnits);
  const steps = first < last && spacing > 0n && (last - first) % spacing === 0n && (last - first) / spacing;
  check(steps && steps < MAX_LABELS, "alphabet", "no whole number of steps, or too many");
  const asText = (units) => {
    const padded = String(units < 0n ? -units : units).padStart(digits + 1, "0");
    const text = digits ? `${padded.slice(0, -digits)}.${padded.slice(-digits)}`.replace(/\.?0+$/, "") : padded;
    return (units < 0n ? "-" : "") + text;
  };
  return Array.from({ length: Number(steps) + 1 }, (_, index) => asText(first + BigInt(index) * spacing));
}

function alphabetNames(alphabet) {
  const { kind, names, ordered } = alphabet;
  if (kind === "scale" && hasFields(alphabet, "high kind low step")) return gridNames(alphabet);
  const isKnown = hasFields(alphabet, "kind names ordered") && kind === "categories" && typeof ordered === "boolean";
  const isFull = isKnown && isListOf(names, isText) && isInteger(names.length, 2, MAX_LABELS);
  check(isFull && !names.includes("NULL"), "alphabet", "not 2 to 1024 labels, or one of them is NULL");
  return names;
}

function checkTypes({ alphabet, denominator, mechanism, outputs, participation, ratio, rows }) {
  check(isObject(alphabet), "alphabet", "not an object");
  check(["protected", "public"].includes(participation) && isText(mechanism), "format", "participation or mechanism");
  check(isListOf(outputs, isText), "format", "outputs must be a list of texts");
  check(isListOf(rows, Array.isArray) && rows.length > 0, "shape", "rows must be a list of lists");
  check(Math.max(outputs.length, rows.length) <= MAX_LABELS + 1, "oversize", "too many symbols");
  check(isListOf(ratio, (number) => isInteger(number, 1, Infinity), 2), "ratio", "not two positive integers");
  check([denominator, ...rows.flat()].every(Number.isSafeInteger), "non-integer", "an entry is not an integer");
  check(MECHANISM.test(mechanism), "mechanism", "unknown mechanism");
}

/** Check the table of a channel in integers; return its columns. */
function checkTable({ rows, outputs, denominator }, inputs) {
  check(isListOf(rows, (row) => row.length === outputs.length, inputs), "shape", "not a row for each answer");
  check(rows.flat().every((entry) => entry >= 0), "negative entry", "an entry is negative");
  check(outputs.length > 0 && denominator === DENOMINATOR, "denominator", "not 2^48");
  const isWhole = (row) => row.reduce((sum, entry) => sum + BigInt(entry), 0n) === BigInt(DENOMINATOR);
  check(rows.every(isWhole), "row sum", "a row does not sum to 2^48");
  const columns = outputs.map((_, index) => rows.map((row) => row[index]));
  check(columns.every((column) => column.some(Boolean)), "empty column", "a report symbol never occurs");
  check(rows.flat().every(Boolean), "zero entry", "an entry of 0 lets a report rule out an answer");
  return columns;
}

/** Return the channel of a parsed certificate after every check that Python makes. */
export async function checkCertificate(data) {
  const fields = "alphabet denominator format mechanism outputs participation ratio rows sha256";
  check(hasFields(data, fields, "crowdveil-channel/1"), "format", "other fields");
  checkTypes(data);
  const { sha256: checksum, ...rest } = data;
  check(checksum === toHex(await sha256(toUtf8(canonical(rest)))), "hash", "the certificate was changed");
  const labels = alphabetNames(data.alphabet);
  [labels, data.outputs].forEach(checkNames);
  const isProtected = data.participation === "protected";
  const [numerator, denominator] = data.ratio.map(BigInt);
  let worst = [1n, 1n];
  for (const column of checkTable(data, labels.length + Number(isProtected))) {
    const [most, least] = [BigInt(Math.max(...column)), BigInt(Math.min(...column))];
    check(most * denominator <= numerator * least, "ratio", "the table exceeds the claimed ratio");
    if (most * worst[1] > worst[0] * least) worst = [most, least];
  }
  const cumulative = data.rows.map((row) => row.map((_, k) => row.slice(0, k + 1).reduce((sum, entry) => sum + entry)));
  const divisor = commonDivisor(...worst);
  return { ...data, labels, isProtected, cumulative, ratio: worst.map((number) => Number(number / divisor)) };
}
const commonDivisor = (a, b) => (b ? commonDivisor(b, a % b) : a);

// Campaign ------------------------------------------------------------------------------------------------------------
const NO_SERVICE = "curators without a service";
const OPTIONAL = ["levels", "links", "prior", "questions", "relay"];
const CAMPAIGN_FIELDS = ("assignment_parts body_bytes cells certificates closes consent format groups labels language min_reports opens " +
  "purge_after_days question salt slots symbol_bytes tasks title url").split(" ");
const HOST = "[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*";
const PORT = "(:(?!6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4})[1-9][0-9]{0,4})?";
const HOST_FORM = new RegExp(`^(${HOST}${PORT}|${NO_SERVICE})$`);
const LINK_FORM = new RegExp(`^(?=.{1,2000}$)https?://${HOST}${PORT}([/?#][!-~]*)?$`);
const BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const NAMED = `${BYTE}(\\.${BYTE}){3}(?=[:/]|$)|(?!([a-z0-9-]+\\.)*([0-9]+|0x[0-9a-f]*)([:/]|$))${HOST}`;
const ORIGIN = `https://(${NAMED})(?!:443(/|$))|http://(127\\.0\\.0\\.1|localhost)(?!:80(/|$))`;
const URL_FORM = new RegExp(`^(?=.{1,200}$)(${ORIGIN})${PORT}(/(?!\\.\\.?(/|$))[A-Za-z0-9._~-]+)*$`);
/** Return whether a text is the address of a service as browsers write it, without a final slash. */
export const isAddress = (text) => isMatch(text, URL_FORM);

function checkFields(data) {
  const { title, question, questions, consent, language, url, opens, closes, tasks, slots, cells } = data;
  check(isName(title, 200) && areLines(question, 2000) && areLines(consent, 20000), "text", "long or not printable");
  check(isMatch(language, /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/), "text", "language");
  check(url === null || isAddress(url), "url", "not https, or not as browsers write it");
  const isDay = (day) => isMatch(day, /^(?!0000)\d{4}-\d\d-\d\d$/) && dayOf(Date.parse(day)) === day;
  check(isDay(opens) && isDay(closes) && opens <= closes, "day", "opens and closes");
  check(isMatch(data.salt, /^[0-9a-f]{32}$/), "salt", "not 16 bytes");
  const isTask = (task) => hasFields(task, "id picture text") && isName(task.id, 200) && areLines(task.text, 20000);
  check(isListOf(tasks, isTask) && tasks.length > 0, "task", "other fields");
  const isPicture = (picture) =>
    hasFields(picture, "alt bytes sha256 type") && isHash(picture.sha256) && areLines(picture.alt, 2000) &&
    isMatch(picture.type, /^image\/(png|jpeg|webp)$/) && isInteger(picture.bytes, 1, 5_000_000);
  const isLink = (link) => link === null || isMatch(link, LINK_FORM);
  check(data.links === undefined || isListOf(data.links, isLink, tasks.length), "links", "not one, or null, for each task");
  check(tasks.every(({ picture }) => picture === null || isPicture(picture)), "picture", "other fields");
  check(isInteger(slots, 1, 1_000_000) && isInteger(data.min_reports, 1, slots), "number", "slots or min_reports");
  check(isInteger(cells, 1, tasks.length) && isInteger(data.symbol_bytes, 1, 2), "number", "cells or symbol_bytes");
  const isQuestion = (one) => hasFields(one, "cells text") && areLines(one.text, 2000) && isInteger(one.cells, 1, cells);
  check(questions === undefined || isListOf(questions, isQuestion), "questions", "other fields");
  check(data.levels === undefined || isInteger(data.levels, 2, 4), "levels", "not 2 to 4");
  check(data.prior === undefined || isHash(data.prior), "prior", "not a SHA-256");
  check(data.body_bytes === cells * data.symbol_bytes + Number(data.levels !== undefined), "number", "body_bytes");
  check(data.purge_after_days === null || isInteger(data.purge_after_days, 0, 3650), "number", "purge_after_days");
  check(isListOf(data.assignment_parts, isHash, Math.ceil(slots / PART_SLOTS)), "part", "not one hash for 100 slots");
  check(isListOf(data.certificates, isObject) && isInteger(data.certificates.length, 1, 64), "format", "certificates");
}

/** Check the relay, and that nothing in a report names its worker: by its hash, every part lists all tasks for each. */
async function checkRelay({ relay, slots, url, tasks, cells, certificates: [only, ...others], ...data }) {
  const isRelay = hasFields(relay, "least_batch operator public_key suite unit") && isName(relay.operator, 200);
  check(isRelay && relay.suite === "hpke-p256-sha256-aes128gcm", "relay", "other fields");
  check(isMatch(relay.public_key, /^04[0-9a-f]{128}$/) && isMatch(relay.unit, /^(report|cell)$/), "relay", "key or unit");
  const isShort = data.body_bytes + 81 * (relay.unit === "cell" ? cells : 1) <= 900_000;
  const key = ["raw", fromHex(relay.public_key), { name: "ECDH", namedCurve: "P-256" }, false, []];
  const isPoint = await crypto.subtle.importKey(...key).then(Boolean, () => false);
  check(isShort && isPoint, "relay", "a sealed report is too long, or the key is no point of P-256");
  const isAlike = cells === tasks.length && others.length === 0 && only.participation === "protected";
  check(isAlike && url && data.purge_after_days !== null && isInteger(relay.least_batch, 2, slots), "relay", "names");
  for (let first = 0; first < slots; first += PART_SLOTS) {
    const lists = Array(Math.min(PART_SLOTS, slots - first)).fill(`[${Array.from(tasks.keys())}]`);
    const hash = await sha256(toUtf8(`{"first":${first},"format":"crowdveil-assignment/1","tasks":[${lists}]}`));
    check(toHex(hash) === data.assignment_parts[first / PART_SLOTS], "relay", "a worker is not asked every task");
  }
}

/** Return the questions of a campaign, each with its text and the most tasks that a worker is asked. */
export const questionsOf = ({ questions, question: text, cells }) => questions ?? [{ text, cells }];
/** Return the index of a task's question. */
export const questionOf = ({ questions, groups }, task) => (questions ? groups.task_group[task] : 0);

function checkQuestions({ questions, question, groups: { choice, task_group: groups }, cells, ...data }) {
  const isAsked = ({ cells: most }, index) => groups.filter((group) => group === index).length >= most;
  const isSorted = groups.every((group, task) => task === 0 || group >= groups[task - 1]);
  const isEach = canonical(choice) === canonical([Array.from(questions.keys())]) && isSorted;
  check(questions.length > 1 && isEach && questions.every(isAsked), "questions", "not a channel and tasks in turn for each");
  const isSum = questions.reduce((sum, one) => sum + one.cells, 0) === cells;
  const texts = questions.map(({ text }) => text);
  check(areUnlike(texts) && texts[0] === question && isSum, "questions", "alike, another first one, or other sums");
  check(!data.levels && !data.relay && !data.prior, "questions", "levels, relay and prior are for one question");
}

function checkGroups({ groups, certificates, tasks, slots, levels = 1, relay, questions }) {
  check(levels === 1 || (!groups && certificates.length === levels && !relay), "levels", "not one channel for each");
  const isSingle = certificates.length === levels && !questions;
  check((groups === null) === isSingle, "groups", "null with one certificate, else needed");
  if (groups === null) return;
  check(hasFields(groups, "choice slot_group task_group"), "groups", "other fields");
  const { choice, task_group: taskGroup, slot_group: slotGroup } = groups;
  const isCodes = (codes, length, bound) => isListOf(codes, (code) => isInteger(code, 0, bound - 1), length);
  const isTable = isListOf(choice, (row) => isCodes(row, choice[0]?.length, certificates.length));
  check(isTable && new Set(choice.flat()).size === certificates.length, "groups", "choice");
  check(isCodes(taskGroup, tasks.length, choice[0].length) && isCodes(slotGroup, slots, choice.length), "groups", "codes");
}

/** Return the campaign of the bytes of campaign.json after every check; `name` is the hash in the link. */
export async function readCampaign(bytes, name) {
  check(bytes.length <= MAX_BYTES, "oversize", "the campaign is too large");
  check(toBase64url(await sha256(bytes)) === name, "hash", "these bytes are another campaign");
  const data = parseCanonical(fromUtf8(bytes));
  const chosen = OPTIONAL.filter((name) => data?.[name] !== undefined);
  check(hasFields(data, CAMPAIGN_FIELDS.concat(chosen).sort().join(" "), "crowdveil-campaign/1"), "format", "other fields");
  checkFields(data);
  checkGroups(data);
  if (data.questions) checkQuestions(data);
  check(areUnlike(data.tasks.map(({ id }, task) => `${questionOf(data, task)} ${id}`)), "task", "two ids look alike");
  if (data.relay !== undefined) await checkRelay(data);
  const asForged = (error) => refuse(error.defect, error.message, "certificate");
  const channels = await Promise.all(data.certificates.map(checkCertificate)).catch(asForged);
  const { alphabet, labels, isProtected, participation } = channels[0];
  const isAlike = (one) => data.questions || canonical(one.alphabet) === canonical(alphabet);
  check(canonical(data.labels) === canonical(labels) && channels.every(isAlike), "labels", "not the same in all");
  const isExact = (text) => String(Number(text)) === text && (text === "0" || Math.abs(Number(text)) >= 1e-4);
  const areExact = (one) => one.alphabet.kind !== "scale" || one.labels.every(isExact);
  check(channels.every(areExact), "alphabet", "a point is not written alike by all readers");
  const isNoAnswer = (text) => /^(noanswer|keineantwort)$/.test(text.normalize("NFKC").toLowerCase().replace(/\P{L}/gu, ""));
  const shown = channels.flatMap((one) => [...one.labels, ...one.outputs]);
  check(shown.every((text) => Array.from(text).length <= 200 && !isNoAnswer(text)), "labels", "long, or no answer");
  check(channels.every((channel) => channel.isProtected === isProtected), "participation", "two kinds");
  check(!channels.some(({ mechanism }) => NO_PRIVACY.test(mechanism)), "no privacy", "a channel is a simulation");
  const areLevels = isProtected && channels.slice(1).every(({ ratio }, index) => isAbove(ratio, channels[index].ratio));
  check(data.levels === undefined || areLevels, "levels", "not ascending, or participation is public");
  const isNarrow = channels.every(({ outputs }) => outputs.length <= (isProtected ? 256 : 255));
  check(data.symbol_bytes === (isNarrow ? 1 : 2), "number", "symbol_bytes");
  return { ...data, name, channels, isProtected, participation };
}

/** Return the channel of a worker's answer to a task, by the level that was chosen, if the campaign has levels. */
export function channelOf({ groups, channels, levels }, slot, task, level) {
  check(levels === undefined ? level === undefined : isInteger(level, 0, levels - 1), "level", "not one of the campaign");
  return channels[groups === null ? (level ?? 0) : groups.choice[groups.slot_group[slot]][groups.task_group[task]]];
}

/** Return the task indices of a slot from the bytes of its assignment part. */
export async function readTasks(bytes, campaign, slot) {
  check(slot < campaign.slots && bytes.length <= MAX_BYTES, "slot", "the campaign has fewer slots");
  const number = Math.floor(slot / PART_SLOTS);
  check(toHex(await sha256(bytes)) === campaign.assignment_parts[number], "hash", "another assignment part");
  const part = parseCanonical(fromUtf8(bytes));
  const isPart = hasFields(part, "first format tasks") && part.format === "crowdveil-assignment/1";
  check(isPart && part.first === number * PART_SLOTS, "part", "other fields");
  const isNext = (task, index, tasks) => isInteger(task, index && tasks[index - 1] + 1, campaign.tasks.length - 1);
  const countOf = (tasks, index) => tasks.filter((task) => questionOf(campaign, task) === index).length;
  const areFew = (tasks) => questionsOf(campaign).every(({ cells }, index) => countOf(tasks, index) <= cells);
  const isAscending = (tasks) => Array.isArray(tasks) && tasks.length > 0 && tasks.every(isNext) && areFew(tasks);
  check(isListOf(part.tasks, isAscending, Math.min(PART_SLOTS, campaign.slots - part.first)), "part", "not ascending");
  return part.tasks[slot - part.first];
}

// Link ----------------------------------------------------------------------------------------------------------------
const LINK = /(?:^|#)1\.[\w-]{43}\.[\w-]{27}/;
const WRAPPED = /(?:^|#)1\.(?:(?:=?\r?\n[> \t]*)?[\w-]){43}\.(?:(?:=?\r?\n[> \t]*)?[\w-]){27}(?![\w-])/;
const CUT = /(?:^|#)1(?:\.[\w-]|\.?$)|#$/;

/** Return campaign, token and slot of the link in a text, or of the part after its #; null if it is none or cut.
 *
 * What mail and chat add is left out: words around it, signs after it, invisible characters, line breaks in it.
 */
export function parseLink(text) {
  const seen = readable(text);
  const [found = ""] = LINK.exec(seen) ?? WRAPPED.exec(seen) ?? [];
  const [, name, token] = found.replace(/=?\r?\n[> \t]*/g, "").split(".");
  if (![name, token].every((part) => part && toBase64url(fromBase64url(part)) === part)) return null;
  return { name, token, slot: new DataView(fromBase64url(token).buffer).getUint32(0) };
}

/** Return whether a text that has no link has the beginning of one. */
export const isCutLink = (text) => !LINK.test(readable(text)) && !WRAPPED.test(readable(text)) && CUT.test(readable(text));

const decode = (_, code) => String.fromCharCode(parseInt(code, 16));
const isSeen = (sign) => /[\r\n\t]/.test(sign) || !INVISIBLE.test(sign);
const readable = (text) => Array.from(text.replace(/%([2-7][0-9A-Fa-f])/g, decode)).filter(isSeen).join("").trim();

// Report --------------------------------------------------------------------------------------------------------------
/** Return secure random bytes; the browser gives at most 65,536 in one call. */
export function randomBytes(count) {
  const bytes = new Uint8Array(count);
  for (let first = 0; first < count; first += 65536) crypto.getRandomValues(bytes.subarray(first, first + 65536));
  return bytes;
}

/** Return one report symbol for each cumulative row: the number of its sums, without the last, up to a 48-bit word. */
export function sample(cumulativeRows, random) {
  return cumulativeRows.map((cumulative, cell) => {
    const word = random.slice(WORD_BYTES * cell, WORD_BYTES * (cell + 1)).reduceRight((sum, byte) => sum * 256 + byte, 0);
    return cumulative.slice(0, -1).reduce((symbol, sum) => symbol + Number(word >= sum), 0);
  });
}

/** Return the body of a report: the level, if any, and a symbol for each task, answered or not, in fixed length. */
export function drawBody(campaign, slot, tasks, answers, level, random = randomBytes(WORD_BYTES * tasks.length)) {
  const { isProtected, levels, symbol_bytes: width } = campaign;
  const isLeftOut = (task) => !isProtected && answers[task] === undefined;
  const rowOf = (task, { cumulative, labels }) => cumulative[answers[task] ?? (isProtected ? labels.length : 0)];
  const symbols = sample(tasks.map((task) => rowOf(task, channelOf(campaign, slot, task, level))), random);
  const bytesOf = (symbol) => [symbol >> 8, symbol & 255].slice(-width);
  const drawn = tasks.flatMap((task, cell) => bytesOf(isLeftOut(task) ? 256 ** width - 1 : symbols[cell]));
  const body = new Uint8Array(campaign.body_bytes);
  body.set(levels === undefined ? drawn : [level, ...drawn]);
  return body;
}

/** Check that a receipt is for this report with exactly these bytes. */
export async function checkReceipt(text, name, report, body) {
  const receipt = parseCanonical(text);
  const isReceipt = hasFields(receipt, "campaign format mac report stored_sha256", "crowdveil-receipt/1");
  const isOwn = isReceipt && receipt.campaign === name && receipt.report === report;
  check(isOwn && receipt.stored_sha256 === toHex(await sha256(body)), "receipt", "it is for another report, or other bytes");
}

// Ledger: what this device has promised, in the form of the Python device's ledger ------------------------------------
/** Return the sum of epsilon = ln(numerator / denominator) over all cells of ledger lines, rounded up to 3 decimals. */
export function sumOfLines(lines) {
  const loss = ({ numerator, denominator, cells }) => cells * (Math.max(0, Math.log(numerator / denominator)) + 4e-16);
  return Math.ceil(lines.reduce((sum, line) => sum + loss(line) * (1 + 2e-15), 0) * 1000) / 1000;
}

const hostOf = ({ url }) => url?.split("/")[2] ?? NO_SERVICE;
const isLoss = ({ cells: n, numerator: a, denominator: b }) => [n, a, b].every((k) => isInteger(k, 1, Infinity)) && a >= b;

/** Return whether a ratio of two integers is above another one. */
const isAbove = ([a, b], [c, d]) => BigInt(a) * BigInt(d) > BigInt(c) * BigInt(b);

/** Return one ledger line for each ratio among the cells of a report. */
export function ledgerLines(campaign, slot, tasks, report, level) {
  const ratios = tasks.map((task) => channelOf(campaign, slot, task, level).ratio.join("/"));
  const { name, participation, title } = campaign;
  const shared = { campaign: name, participation, report, title, day: dayOf(Date.now()), host: hostOf(campaign) };
  return Array.from(new Set(ratios), (ratio) => {
    const [numerator, denominator] = ratio.split("/").map(Number);
    return { ...shared, cells: ratios.filter((other) => other === ratio).length, numerator, denominator };
  });
}

/** Return the lines of a ledger file. */
export function readLedger(text) {
  const data = parseCanonical(text);
  const isLine = (line) =>
    hasFields(line, "campaign cells day denominator host numerator participation report title") &&
    isLoss(line) && isMatch(line.campaign, /^[\w-]{43}$/) && isMatch(line.report, /^[0-9a-f]{32}$/) && isText(line.title) &&
    isMatch(line.day, /^\d{4}-\d\d-\d\d$/) && isMatch(line.host, HOST_FORM) && isMatch(line.participation, /^(protected|public)$/);
  check(hasFields(data, "format lines", "crowdveil-ledger/1") && isListOf(data.lines, isLine), "ledger", "other fields");
  return data.lines;
}

// Service -------------------------------------------------------------------------------------------------------------
const ALWAYS = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };

/** Return the bytes of the service's reply; the token travels in a header, never in an address. */
async function request(path, { token, ...options } = {}) {
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  const lost = () => refuse("unreachable");
  const response = await fetch(new URL(`../v1/campaigns/${path}`, location.href), { ...ALWAYS, ...options, headers }).catch(lost);
  if (response.ok) return new Uint8Array(await response.arrayBuffer().catch(lost));
  if ([408, 429].includes(response.status) || response.status >= 500) lost();
  const problem = await response.json().catch(() => ({}));
  return refuse(String(problem?.type).split("/").pop(), `the service replied with status ${response.status}`);
}

/** Return the result of a promise; undefined if it fails, or gives none in these milliseconds. */
const within = (time, promise) => Promise.race([promise, new Promise((done) => setTimeout(done, time))]).catch(() => {});

const dateOf = async (reply) => (await reply.arrayBuffer()) && Date.parse(reply.headers.get("Date"));
/** Return the time of the service in milliseconds; NaN or undefined where it is unknown. */
const serviceTime = () => within(CLOCK_LIMIT, fetch(new URL("../healthz", location.href), ALWAYS).then(dateOf));

/** Repeat an action until the service is reached: after 1, 2, 4 ... 60 seconds, or when the connection is back. */
async function persistently(action, onConnection) {
  for (let seconds = 1; ; seconds = Math.min(2 * seconds, 60)) {
    try {
      const result = await action();
      onConnection(true);
      return result;
    } catch (error) {
      if (error.defect !== "unreachable") throw error;
      onConnection(false);
      const jitter = 1 + randomBytes(1)[0] / 512;
      const online = new Promise((resolve) => addEventListener("online", resolve, { once: true }));
      await within(1000 * jitter * seconds, online);
    }
  }
}

const fetchTexts = async (language) => (await fetch(new URL(`../static/messages.${language}.json`, location.href))).json();
const readTexts = (language) => persistently(() => fetchTexts(language).catch(() => refuse("unreachable")), () => {});
/** Return the texts of the page in both languages. */
export const readMessages = async () => ({ en: await readTexts("en"), de: await readTexts("de") });

// Device: one record per worker and campaign, whose state moves only when the disk has it ----------------------------
const answered = (request) => new Promise((resolve, reject) =>
  Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }));

/** Check that the ledger has no report of a campaign: a second one would reveal as much again. */
const checkFirst = (lines, name) => check(!lines.some(({ campaign }) => campaign === name), "answered-before");
const levelsOf = (records, campaign) => records.flatMap(({ name, level = [] }) => (name === campaign ? level : []));
const keyOf = ({ report, numerator, denominator }) => `${report}:${numerator}/${denominator}`;

/** States of the record: fetched, answering, sampled, receipted. */
export class Device {
  /** `files`: the campaign's files in base64, without a service; `onConnection` gets true or false; `seal`: of a body. */
  constructor(files, onConnection, seal) { Object.assign(this, { files, onConnection, seal }); }

  async openDatabase() {
    const request = indexedDB.open("crowdveil", 1);
    request.onupgradeneeded = () => STORES.forEach((name) => request.result.createObjectStore(name));
    this.database = await answered(request);
  }

  /** Run one transaction over records, ledger and settings; its result is returned only after it is on the disk. */
  async transact(work) {
    const transaction = this.database.transaction(STORES, "readwrite", { durability: "strict" });
    const committed = new Promise((oncomplete, reject) => Object.assign(transaction,
      { oncomplete, onabort: () => reject(transaction.error ?? new Error("the transaction was aborted")) }));
    return (await Promise.all([work(...STORES.map((name) => transaction.objectStore(name))), committed]))[0];
  }

  /** Replace this worker's record by `change(record, lines, all, ledger)`; it counts only after it is stored. */
  async save(change) {
    this.record = await this.transact(async (records, ledger) => {
      const [old, lines, all] = await Promise.all([records.get(this.key), ledger.getAll(), records.getAll()].map(answered));
      const record = change(old ?? {}, lines, all, ledger);
      records.put(record, this.key);
      return record;
    });
  }

  /** Return the records whose report has not been confirmed. */
  async openRecords() {
    return (await this.transact((store) => answered(store.getAll()))).filter(({ state }) => state !== "receipted");
  }

  /** Store a link, or find the record of its slot. The lock lives as long as the page: a second tab cannot answer. */
  async takeLink({ name, token, slot }) {
    this.key = `${name}:${slot}`;
    await new Promise((resolve, reject) => {
      const keep = (lock) => (lock ? new Promise(() => resolve()) : reject(new Refusal("second-tab")));
      navigator.locks.request(`crowdveil:${this.key}`, { ifAvailable: true }, keep).catch(reject);
    });
    const link = { name, slot, ...(token && { token }) };
    await this.save((record) => (record.state === "receipted" ? record : { state: "fetched", ...record, ...link }));
  }

  /** Return a file of the campaign, from the page itself or from the service. */
  async load(path) {
    if (this.files) return fromBase64(this.files[path] ?? refuse("unknown"));
    return persistently(() => request(path), this.onConnection);
  }

  /** Verify campaign and tasks, at every start; stored bytes are checked like loaded ones. */
  async verify() {
    const { name, slot, campaign: storedCampaign, part: storedPart } = this.record;
    const bytes = storedCampaign ?? (await this.load(name));
    const campaign = await readCampaign(bytes, name);
    check(this.files || `${campaign.url}/` === new URL("..", location.href).href, "elsewhere", campaign.url);
    const part = storedPart ?? (await this.load(`${name}/parts/${Math.floor(slot / PART_SLOTS)}`));
    const tasks = await readTasks(part, campaign, slot);
    const stored = { campaign: bytes, part, title: campaign.title };
    await this.save((record, _, all) => ({ ...record, ...stored, level: record.level ?? levelsOf(all, name)[0] }));
    Object.assign(this, { campaign, tasks });
  }

  /** Check that today is a day of the campaign, in UTC: by the clock of the service, or of this device without one.
   *
   * `isClockOdd`: the clock of this device decides, or is ten minutes off. A service that is not reached decides later.
   */
  async checkDays() {
    const time = this.files ? Date.now() : await serviceTime();
    this.isClockOdd = Boolean(this.files) || Math.abs(time - Date.now()) > USUAL_DELAY;
    if (time) this.checkDay(dayOf(time));
  }

  checkDay(today, { opens, closes } = this.campaign) { return check(opens <= today, "early") && check(today <= closes, "closed"); }

  /** Return the bytes of a picture after checking its hash. */
  async picture({ sha256: hash }) {
    const bytes = await this.load(`${this.record.name}/pictures/${hash}`);
    check(toHex(await sha256(bytes)) === hash, "hash", "another picture");
    return bytes;
  }

  /** Check that the campaign is open and the link unused: with the service, or by the calendar where there is none. */
  async checkLink() {
    const { name, token } = this.record;
    if (this.files) return this.checkDay(dayOf(Date.now()));
    const reply = await persistently(() => request(`${name}/link`, { token }), this.onConnection);
    const { state, campaign } = { ...(await new Response(reply).json().catch(() => refuse("reply", "it is no JSON"))) };
    return check(state === "unused", state === "used" ? "link-used" : "link-revoked") && check(campaign === "open", campaign);
  }

  async start() {
    this.newLines(); // refuses to go on before a level is chosen
    await this.checkLink();
    await within(PERSIST_LIMIT, navigator.storage?.persist?.());
    await this.save((record, lines) => checkFirst(lines, record.name) && { ...record, state: "answering" });
  }

  /** Keep an answer on this device, a label code by task index; `undefined` is no answer. */
  async answer(task, code) { await this.save((record) => ({ ...record, answers: { ...record.answers, [task]: code } })); }

  /** Keep the level that the worker chooses, once: what comes later, such as the questions, cannot change it. */
  async choose(level) {
    this.newLines("", level);
    const isFree = ({ name, state, level: old }, all) =>
      (state === "fetched" || old === level) && levelsOf(all, name).every((one) => one === level);
    await this.save((record, lines, all) => check(isFree(record, all), "level", "chosen before") && { ...record, level });
  }

  /** Return the ledger lines that this report would add, with the chosen level or another one. */
  newLines(report = "", level = this.record.level) {
    return ledgerLines(this.campaign, this.record.slot, this.tasks, report, level);
  }

  /** Draw the report, once: an existing report is kept. The transaction that stores it deletes the answers. */
  async draw() {
    await this.checkLink();
    const symbols = drawBody(this.campaign, this.record.slot, this.tasks, this.record.answers ?? {}, this.record.level);
    const body = this.campaign.relay ? await this.seal(this.campaign, symbols) : symbols;
    const drawn = { body, report: toHex(randomBytes(16)), state: "sampled" };
    await this.save(({ answers, ...record }, lines, all, ledger) => {
      if (record.body) return record;
      checkFirst(lines, record.name);
      for (const line of this.newLines(drawn.report)) ledger.put(line, keyOf(line));
      return { ...record, ...drawn };
    });
  }

  /** Send the same bytes until the service confirms them. */
  async deliver() {
    const { name, token, report, body } = this.record;
    const options = { method: "PUT", token, body, headers: { "Content-Type": "application/vnd.crowdveil.report.v1" } };
    const receipt = await persistently(() => request(`${name}/reports/${report}`, options), this.onConnection);
    await checkReceipt(fromUtf8(receipt), name, report, body);
    await this.finish();
  }

  /** Return the report as a file's text; it holds the token. */
  reportFile() {
    const { name, token, report, body } = this.record;
    return canonical({ campaign: name, format: "crowdveil-report/1", report, symbols: toHex(body), token });
  }

  /** Keep the title alone: report, link and campaign are deleted. */
  async finish() { await this.save(({ title }) => ({ title, state: "receipted" })); }

  /** Return all ledger lines and the worker's limit, after adding lines or changing the limit; no line is replaced. */
  async ledger({ imported = [], limit } = {}) {
    return this.transact(async (_, ledger, settings) => {
      const isNew = async (line) => (await answered(ledger.getKey(keyOf(line)))) === undefined;
      for (const line of imported) if (await isNew(line)) ledger.put(line, keyOf(line));
      if (limit !== undefined) settings.put(limit, "limit");
      const [lines, stored] = [await answered(ledger.getAll()), await answered(settings.get("limit"))];
      return { lines, limit: stored ?? USUAL_LIMIT, isOwn: stored !== undefined, text: canonical({ format: "crowdveil-ledger/1", lines }) };
    });
  }
}
