/** Parses one document, YAML or JSON. Rejects a key that occurs twice in an object: the parsers silently keep the last. */

import { locateJson } from "../../config/json-positions.ts";
import { type ConfigPath, pathText } from "../../config/problem.ts";
import { isNestedTooDeep, MAXIMUM_NESTING } from "../../parse-json.ts";
import type { Document } from "./documents.ts";
import { canRepeatKeys, findRepeatedKeys, locateYaml } from "./repeated-keys.ts";
import { locateYamlError, type YamlError } from "./yaml-error.ts";

export type ParsedDocument =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The line of its file, for messages; of what contains the value if it does not exist. */
      lineOf(path: ConfigPath): number;
    }
  | { readonly ok: false; readonly problems: readonly string[] };

/** `line`: where the document begins in its file, for messages. */
export function parseDocument({ text, line }: Pick<Document, "text" | "line">): ParsedDocument {
  const toFile = (lineOfDocument: number) => lineOfDocument + line - 1;
  // YAML's document marker is replaced by spaces, so that all positions stay the same.
  const body = text.replace(/^(\s*)---(?=\s)/, "$1   ");
  const places = /^\s*[{[]/.test(body) ? locateJson(body) : undefined;
  if (places?.ok) {
    const repeated = places.repeated.map(({ path, position }) => ({ path, line: position.line }));
    const lineOf = (path: ConfigPath) => toFile(places.find(path).line);
    return unlessRepeated(repeated, toFile) ?? { ok: true, value: JSON.parse(body), lineOf };
  }
  const yaml = tryYaml(text);
  if (yaml.ok) {
    // Only for messages, and once for all of them.
    let find: ((path: ConfigPath) => number) | undefined;
    const lineOf = (path: ConfigPath) => {
      find ??= locateYaml(text);
      return toFile(find(path));
    };
    const repeated = canRepeatKeys(text, yaml.value) ? findRepeatedKeys(text) : [];
    if (repeated !== undefined) return unlessRepeated(repeated, toFile) ?? { ...yaml, lineOf };
  }
  const error = yaml.ok ? locateYamlError(text, READ_DIFFERENTLY) : yaml.error;
  const { line: lineOfError, column, reason } = places ? { ...places.position, reason: places.reason } : error;
  const place = `line ${toFile(lineOfError)}, column ${column}`;
  return { ok: false, problems: [`it is not valid ${places ? "JSON" : "YAML"}: ${place}: ${reason}`] };
}

const READ_DIFFERENTLY = "programs read it differently; write it more simply";

type Yaml = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: YamlError };

const TOO_DEEP: YamlError = { line: 1, column: 1, reason: `it is nested more than ${MAXIMUM_NESTING} levels deep` };

/** A value can be endless, because an alias stands for the value at its anchor; the parser limits only their number. */
function tryYaml(text: string): Yaml {
  try {
    const value: unknown = Bun.YAML.parse(text);
    return isNestedTooDeep(value) ? { ok: false, error: TOO_DEEP } : { ok: true, value };
  } catch (cause) {
    if (cause instanceof RangeError) return { ok: false, error: TOO_DEEP };
    const reason = cause instanceof Error ? cause.message.replace(/^YAML Parse error: /, "") : String(cause);
    return { ok: false, error: locateYamlError(text, reason) };
  }
}

function unlessRepeated(
  repeated: readonly { readonly path: ConfigPath; readonly line: number }[],
  toFile: (line: number) => number,
): ParsedDocument | undefined {
  if (repeated.length === 0) return undefined;
  const problems = repeated.map(
    ({ path, line }) => `${pathText(path)}: is given more than once, last on line ${toFile(line)}; keep only one`,
  );
  return { ok: false, problems };
}
