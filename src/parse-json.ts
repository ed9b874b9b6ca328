/**
 * Parses JSON that is nested no deeper than any real config or record.
 *
 * Every decoder, and every encoder of what was decoded, walks the nesting by recursion: what could exhaust the stack
 * is rejected where it is parsed.
 */
export const MAXIMUM_NESTING = 500;

/** Thrown for valid JSON that is not accepted. */
export class NestingError extends SyntaxError {
  override readonly name = "NestingError";

  constructor() {
    super(`it is nested more than ${MAXIMUM_NESTING} levels deep`);
  }
}

/** Throws a `SyntaxError`. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (hasManyBrackets(text) && isNestedTooDeep(value)) throw new NestingError();
  return value;
}

/** Also true for a value that contains itself. */
export function isNestedTooDeep(value: unknown, levels = MAXIMUM_NESTING): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return members.some((member) => isNestedTooDeep(member, levels - 1));
}

/** Two cheap checks that ordinary texts do not pass: every level has an opening and a closing bracket. */
function hasManyBrackets(text: string): boolean {
  if (text.length <= 2 * MAXIMUM_NESTING) return false;
  return text.split("[").length + text.split("{").length > MAXIMUM_NESTING;
}
