/** Escapes what could break the line, control the terminal or turn the direction of text, in the text of a stored record. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, (character) => SHORT[character] ?? `\\u${hexOf(character)}`);
}

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, "0");
}

/** JSON on one line that is safe to print: `JSON.stringify` leaves some control characters as they are. */
export function printableJson(value: unknown): string {
  return printable(JSON.stringify(value));
}
