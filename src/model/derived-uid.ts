/**
 * The UID of a resource that is derived from an object of the orchestrator: another one, so that nobody takes one for the
 * other, and always the same. The bits of every byte are reversed, except in those that say what version of UID it is.
 */
const VERSION_BYTES: ReadonlySet<number> = new Set([6, 8]);
const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A text that is not a UID is returned unchanged. */
export function derivedUid(uid: string): string {
  if (!UID.test(uid)) return uid;
  const bytes = uid.replaceAll("-", "").match(/../g) ?? [];
  const hex = bytes.map((byte, index) => (VERSION_BYTES.has(index) ? byte : reversed(byte))).join("");
  return hex.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function reversed(byte: string): string {
  const bits = Number.parseInt(byte, 16).toString(2).padStart(8, "0");
  return Number.parseInt([...bits].toReversed().join(""), 2)
    .toString(16)
    .padStart(2, "0");
}
