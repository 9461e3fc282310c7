/* QR codes (ISO/IEC 18004) of ASCII texts: byte mode, error correction level L, versions 1 to 40.
 *
 * Only the one-file page uses it, to show a report as a picture.
 */

const EC_WORDS = [
  7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30,
  30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
];
const BLOCKS = [
  1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19,
  20, 21, 22, 24, 25,
];
const MASKS = [
  (y, x) => (y + x) % 2 === 0,
  (y) => y % 2 === 0,
  (_, x) => x % 3 === 0,
  (y, x) => (y + x) % 3 === 0,
  (y, x) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (y, x) => ((y * x) % 2) + ((y * x) % 3) === 0,
  (y, x) => (((y * x) % 2) + ((y * x) % 3)) % 2 === 0,
  (y, x) => (((y + x) % 2) + ((y * x) % 3)) % 2 === 0,
];
const FINDER_LIKE = ["10111010000", "00001011101"];
const range = (count) => Array.from({ length: count }, (_, index) => index);

/** Return the centres of the alignment patterns along one side. */
function alignment(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = version === 32 ? 26 : Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  return [6, ...range(count - 1).map((index) => version * 4 + 10 - (count - 2 - index) * step)];
}

/** Return the number of data and error correction bytes of a version. */
function capacity(version) {
  const count = version < 2 ? 0 : Math.floor(version / 7) + 2;
  const aligned = version < 2 ? 0 : (25 * count - 10) * count - 55;
  return Math.floor(((16 * version + 128) * version + 64 - aligned - (version >= 7 ? 36 : 0)) / 8);
}

/** Return the product in GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1. */
function multiply(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((b >> bit) & 1) * a);
  return product;
}

/** Return the Reed-Solomon remainder of data: `count` error correction bytes. */
function errorCorrection(data, count) {
  let generator = [1];
  let root = 1;
  for (let power = 0; power < count; power++, root = multiply(root, 2)) {
    generator = [...generator, 0].map((term, index) => term ^ multiply(index > 0 ? generator[index - 1] : 0, root));
  }
  const remainder = Array(count).fill(0);
  for (const byte of data) {
    const factor = byte ^ remainder.shift();
    remainder.push(0);
    generator.slice(1).forEach((term, index) => (remainder[index] ^= multiply(term, factor)));
  }
  return remainder;
}

/** Return data and error correction bytes, interleaved over the blocks. */
function codewords(text, version) {
  const [words, blocks, total] = [EC_WORDS[version - 1], BLOCKS[version - 1], capacity(version)];
  const length = total - words * blocks;
  const bytes = Array.from(text, (character) => character.charCodeAt(0));
  const toBits = (value, width) => range(width).map((index) => (value >> (width - 1 - index)) & 1);
  const bits = [...toBits(4, 4), ...toBits(bytes.length, version < 10 ? 8 : 16), ...bytes.flatMap((b) => toBits(b, 8))];
  bits.push(...Array(Math.min(4, length * 8 - bits.length)).fill(0));
  while (bits.length % 8) bits.push(0);
  const data = range(bits.length / 8).map((index) => parseInt(bits.slice(8 * index, 8 * index + 8).join(""), 2));
  for (let index = 0; data.length < length; index++) data.push(index % 2 ? 0x11 : 0xec);
  const short = Math.floor(length / blocks);
  const parts = [];
  for (let block = 0, first = 0; block < blocks; block++) {
    const size = short + (block >= blocks - (length % blocks) ? 1 : 0);
    parts.push(data.slice(first, (first += size)));
  }
  const corrections = parts.map((part) => errorCorrection(part, words));
  const longest = Math.max(...parts.map((part) => part.length));
  const interleave = (lists) => range(Math.max(longest, words)).flatMap((k) => lists.map((list) => list[k]));
  return [...interleave(parts), ...interleave(corrections)].filter((byte) => byte !== undefined);
}

/** Return `data` followed by its remainder modulo a generator of the given degree. */
function withRemainder(data, generator, degree) {
  let remainder = data;
  for (let step = 0; step < degree; step++) remainder = (remainder << 1) ^ ((remainder >> (degree - 1)) * generator);
  return (data << degree) | remainder;
}

/** Return the function patterns of a version: rows of 0, 1, and null where data belong. */
function patterns(version) {
  const size = 17 + 4 * version;
  const rows = range(size).map(() => Array(size).fill(null));
  const set = (y, x, dark) => y >= 0 && x >= 0 && y < size && x < size && (rows[y][x] = Number(dark));
  const square = (cy, cx, radius, light) => {
    const isLight = (dy, dx) => light.includes(Math.max(Math.abs(dy), Math.abs(dx)));
    for (let dy = -radius; dy <= radius; dy++) {
      for (let dx = -radius; dx <= radius; dx++) set(cy + dy, cx + dx, !isLight(dy, dx));
    }
  };
  for (const index of range(size)) {
    set(6, index, index % 2 === 0);
    set(index, 6, index % 2 === 0);
  }
  for (const [y, x] of [[3, 3], [3, size - 4], [size - 4, 3]]) square(y, x, 4, [2, 4]);
  const centres = alignment(version);
  const last = centres.length - 1;
  const isCorner = (i, j) => [[0, 0], [0, last], [last, 0]].some(([a, b]) => a === i && b === j);
  centres.forEach((y, i) => centres.forEach((x, j) => isCorner(i, j) || square(y, x, 2, [1])));
  if (version >= 7) {
    const bits = withRemainder(version, 0x1f25, 12);
    for (const k of range(18)) {
      set(size - 11 + (k % 3), Math.floor(k / 3), (bits >> k) & 1);
      set(Math.floor(k / 3), size - 11 + (k % 3), (bits >> k) & 1);
    }
  }
  return { rows, set, size };
}

/** Write the level and the mask beside the finder patterns. */
function setFormat({ set, size }, mask) {
  const bits = withRemainder(8 | mask, 0x537, 10) ^ 0x5412;
  for (const k of range(15)) {
    const bit = (bits >> k) & 1;
    if (k < 8) set(8, size - 1 - k, bit);
    else set(size - 15 + k, 8, bit);
    if (k < 6) set(k, 8, bit);
    else if (k < 8) set(k + 1, 8, bit);
    else set(8, k === 8 ? 7 : 14 - k, bit);
  }
  set(size - 8, 8, 1);
}

/** Return the penalty of a symbol: runs, squares, patterns like finders, and the share of dark modules. */
function penalty(rows) {
  const lines = [...rows, ...rows.map((_, x) => rows.map((row) => row[x]))].map((line) => line.join(""));
  let sum = 0;
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) sum += run.length - 2;
    for (let k = 0; k + 11 <= line.length; k++) sum += FINDER_LIKE.includes(line.slice(k, k + 11)) ? 40 : 0;
  }
  for (let y = 1; y < rows.length; y++) {
    for (let x = 1; x < rows.length; x++) {
      const cell = rows[y][x];
      sum += rows[y - 1][x] === cell && rows[y][x - 1] === cell && rows[y - 1][x - 1] === cell ? 3 : 0;
    }
  }
  const dark = rows.flat().reduce((total, cell) => total + cell, 0) / rows.length ** 2;
  return sum + 10 * Math.floor(Math.abs(dark * 100 - 50) / 5);
}

/** Return the symbol with one mask. */
function masked(version, words, mask) {
  const symbol = patterns(version);
  setFormat(symbol, mask);
  const { rows, size } = symbol;
  let index = 0;
  for (let right = size - 1, upward = true; right > 0; right -= 2, upward = !upward) {
    if (right === 6) right = 5;
    for (const step of range(size)) {
      const y = upward ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (rows[y][x] !== null) continue;
        const bit = index < 8 * words.length ? (words[index >> 3] >> (7 - (index & 7))) & 1 : 0;
        rows[y][x] = bit ^ Number(MASKS[mask](y, x));
        index++;
      }
    }
  }
  return rows;
}

/** Return the rows of the smallest QR code of an ASCII text, 1 for dark; null if the text is too long. */
export function qrRows(text, mask = undefined) {
  const room = (version) => capacity(version) - EC_WORDS[version - 1] * BLOCKS[version - 1] - (version < 10 ? 2 : 3);
  const version = range(40).map((index) => index + 1).find((candidate) => text.length <= room(candidate));
  if (version === undefined) return null;
  const words = codewords(text, version);
  if (mask !== undefined) return masked(version, words, mask);
  const symbols = MASKS.map((_, index) => masked(version, words, index));
  const penalties = symbols.map(penalty);
  return symbols[penalties.indexOf(Math.min(...penalties))];
}

/** Return the QR code of a text as an SVG node with a quiet zone of 4 modules; null if the text is too long. */
globalThis.qrPicture = (text) => {
  const rows = qrRows(text);
  if (!rows) return null;
  const node = (name, attributes) => {
    const created = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
    return created;
  };
  const dark = rows.flatMap((row, y) => row.flatMap((cell, x) => (cell ? [`M${x + 4} ${y + 4}h1v1h-1z`] : [])));
  const side = rows.length + 8;
  const viewBox = `0 0 ${side} ${side}`;
  const picture = node("svg", { viewBox, role: "img", "aria-label": "QR", "shape-rendering": "crispEdges" });
  picture.append(node("path", { d: dark.join(""), fill: "#000000" }));
  return picture;
};
