/**
 * The order of keys: by code point, which equals the order of UTF-8 bytes that
 * SQLite and etcd use. JavaScript's own `<` compares UTF-16 units and differs
 * for characters beyond U+FFFF.
 */
const LAST_CODE_POINT = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const AFTER_SURROGATES = 0xe000;

/** Negative if `left` comes first, positive if `right` does, zero if they are equal. */
export function compareKeys(left: string, right: string): number {
  const shared = Math.min(left.length, right.length);
  for (let index = 0; index < shared; index++) {
    const leftUnit = left.charCodeAt(index);
    const rightUnit = right.charCodeAt(index);
    if (leftUnit !== rightUnit) return rank(leftUnit) - rank(rightUnit);
  }
  return left.length - right.length;
}

/** Surrogates stand for code points above every other unit. */
function rank(unit: number): number {
  if (unit < FIRST_SURROGATE) return unit;
  return unit < AFTER_SURROGATES ? unit + AFTER_SURROGATES : unit - (AFTER_SURROGATES - FIRST_SURROGATE);
}

/** The first text after every text with this prefix; `undefined` if there is none. */
export function prefixEnd(prefix: string): string | undefined {
  const characters = Array.from(prefix);
  while (characters.length > 0) {
    const last = characters.pop()?.codePointAt(0) ?? LAST_CODE_POINT;
    if (last < LAST_CODE_POINT) return characters.join("") + String.fromCodePoint(nextCodePoint(last));
  }
  return undefined;
}

function nextCodePoint(codePoint: number): number {
  return codePoint + 1 === FIRST_SURROGATE ? AFTER_SURROGATES : codePoint + 1;
}
