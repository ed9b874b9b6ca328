/** One document, YAML or JSON, as a value. A key that stands twice in an object is a mistake: the parsers keep the last and say nothing. */
import { type ConfigPath, pathText } from "../../config/problem.ts";
import { locateJson } from "../json-places.ts";
import type { Document } from "./documents.ts";
import { findRepeatedKeys } from "./repeated-keys.ts";

export type ParsedDocument =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly string[] };

/** `line`: where the document begins in its file, for the messages. */
export function parseDocument({ text, line }: Pick<Document, "text" | "line">): ParsedDocument {
  const toFile = (lineOfDocument: number) => lineOfDocument + line - 1;
  // YAML's marker, blotted out so that every place stays where it is.
  const body = text.replace(/^(\s*)---(?=\s)/, "$1   ");
  const places = /^\s*[{[]/.test(body) ? locateJson(body) : undefined;
  if (places?.ok) {
    const repeated = places.repeated.map(({ path, position }) => ({ path, line: position.line }));
    return unlessRepeated(repeated, toFile) ?? { ok: true, value: JSON.parse(body) };
  }
  const yaml = tryYaml(text);
  if (yaml.ok) return unlessRepeated(findRepeatedKeys(text), toFile) ?? yaml;
  const reason = places
    ? `as JSON it is wrong at line ${toFile(places.position.line)}, column ${places.position.column}: ${places.reason}`
    : yaml.reason;
  return { ok: false, problems: [`it is neither YAML nor JSON (${reason})`] };
}

type Yaml = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string };

function tryYaml(text: string): Yaml {
  try {
    return { ok: true, value: Bun.YAML.parse(text) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^YAML Parse error: /, "") : String(cause);
    return { ok: false, reason };
  }
}

function unlessRepeated(
  repeated: readonly { readonly path: ConfigPath; readonly line: number }[],
  toFile: (line: number) => number,
): ParsedDocument | undefined {
  if (repeated.length === 0) return undefined;
  const problems = repeated.map(
    ({ path, line }) => `${pathText(path)}: is given more than once, last in line ${toFile(line)}; keep one of them`,
  );
  return { ok: false, problems };
}
