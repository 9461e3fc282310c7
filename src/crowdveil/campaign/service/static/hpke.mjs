/* Encryption of a report to the curator's key: HPKE (RFC 9180) in base mode for one message, by WebCrypto alone.
 *
 * Suite: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. A sealed text is the ephemeral public key (65 bytes) and
 * the ciphertext with its tag, 81 bytes more than the text. Names are those of the RFC.
 */

const KEY_BYTES = 16;
const NONCE_BYTES = 12;
const SECRET_BYTES = 32;
const CURVE = { name: "ECDH", namedCurve: "P-256" };
const LABEL = "crowdveil-relay/1";
const WHOLE_REPORT = 2 ** 32 - 1;

const toBytes = (part) => (typeof part === "string" ? new TextEncoder().encode(part) : Uint8Array.from(part));
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => Array.from(toBytes(part))));
const KEM_SUITE = join("KEM", [0, 0x10]);
const HPKE_SUITE = join("HPKE", [0, 0x10, 0, 1, 0, 1]);

async function hmac(key, data) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, data));
}

/** LabeledExtract; a salt of zeros is HKDF's empty salt. */
const extract = (suite, label, ikm, salt = new Uint8Array(SECRET_BYTES)) =>
  hmac(salt, join("HPKE-v1", suite, label, ikm));

/** LabeledExpand for at most 32 bytes: one block of HKDF. */
const expand = async (suite, prk, label, info, length) =>
  (await hmac(prk, join([0, length], "HPKE-v1", suite, label, info, [1]))).slice(0, length);

/** Return the ephemeral public key and the shared secret (Encap). */
async function encapsulate(publicKey, keyPair) {
  const recipient = await crypto.subtle.importKey("raw", publicKey, CURVE, false, []);
  const ephemeral = keyPair ?? (await crypto.subtle.generateKey(CURVE, true, ["deriveBits"]));
  const bits = await crypto.subtle.deriveBits({ ...CURVE, public: recipient }, ephemeral.privateKey, 256);
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const prk = await extract(KEM_SUITE, "eae_prk", new Uint8Array(bits));
  return { enc, secret: await expand(KEM_SUITE, prk, "shared_secret", join(enc, publicKey), SECRET_BYTES) };
}

/** Return the sealed text (SetupBaseS, Seal); `keyPair` and `aad` are for the vectors of the RFC. */
export async function seal(publicKey, info, text, { aad = new Uint8Array(), keyPair } = {}) {
  const { enc, secret: shared } = await encapsulate(publicKey, keyPair);
  const hashes = [await extract(HPKE_SUITE, "psk_id_hash", ""), await extract(HPKE_SUITE, "info_hash", info)];
  const context = join([0], ...hashes);
  const secret = await extract(HPKE_SUITE, "secret", "", shared);
  const rawKey = await expand(HPKE_SUITE, secret, "key", context, KEY_BYTES);
  const iv = await expand(HPKE_SUITE, secret, "base_nonce", context, NONCE_BYTES);
  const key = await crypto.subtle.importKey("raw", rawKey, "AES-GCM", false, ["encrypt"]);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: aad }, key, text);
  return join(enc, new Uint8Array(sealed));
}

/** Return the bytes that a seal is bound to: campaign, and task index or "whole report". */
function sealInfo(name, part) {
  const digest = atob(name.replaceAll("-", "+").replaceAll("_", "/"));
  const index = [24, 16, 8, 0].map((shift) => (part >>> shift) & 255);
  return join(LABEL, Array.from(digest, (character) => character.charCodeAt(0)), index);
}

/** Return the body of a report, sealed as a whole or cell by cell, in the order of the tasks. */
export async function sealBody({ name, relay, symbol_bytes: width }, body) {
  const publicKey = Uint8Array.from(relay.public_key.match(/../g), (pair) => parseInt(pair, 16));
  if (relay.unit === "report") return seal(publicKey, sealInfo(name, WHOLE_REPORT), body);
  const parts = [];
  for (let first = 0; first < body.length; first += width) {
    parts.push(await seal(publicKey, sealInfo(name, first / width), body.slice(first, first + width)));
  }
  return join(...parts);
}
