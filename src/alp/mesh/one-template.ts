/** Inserts the sidecar into the single template of mesh 1.7 and older: between marks, by which it is found again. Pure. */
import { identity } from "../../identity.ts";
import { PROXY_CONTAINER } from "./sidecar-parts.ts";
import {
  type InsertedPart,
  insertedParts,
  PLACE_WORDS,
  type Place,
  refused,
  type SidecarRelease,
} from "./template-parts.ts";
import { indentationOf, membersIndentation, type Span, spanOfKey } from "./yaml-lines.ts";

const BEGIN = `# ${identity.sidecar}: begin`;
const END = `# ${identity.sidecar}: end`;

/** `lines`: a configuration whose `template` is a literal block. */
export function insertIntoOneTemplate(lines: readonly string[], release: SidecarRelease): readonly string[] {
  const clean = withoutMarked(lines);
  const template = spanOfKey(clean, "template") ?? { first: -1, end: 0 };
  refuseUnmarked(clean);
  const parts = insertedParts(release).map((part) => ({ part, after: lineOf(part.place, clean, template) }));
  return clean.flatMap((line, index) => [
    line,
    ...parts.filter(({ after }) => after === index).flatMap(({ part }) => markedLines(part, line)),
  ]);
}

export function withoutMarked(lines: readonly string[]): readonly string[] {
  let isMarked = false;
  const kept: string[] = [];
  for (const line of lines) {
    const text = line.trim();
    if (text === BEGIN) isMarked = true;
    if (!isMarked) kept.push(line);
    if (text === END) isMarked = false;
  }
  if (isMarked)
    throw refused(`it has a line "${BEGIN}", but no line "${END}" after it; remove what was inserted by hand`);
  return kept;
}

function refuseUnmarked(lines: readonly string[]): void {
  if (!lines.some((line) => line.trim() === `- name: ${identity.sidecar}`)) return;
  throw refused(
    `it has a container "${identity.sidecar}" that is not between "${BEGIN}" and "${END}"; remove it by hand`,
  );
}

function lineOf(place: Place, lines: readonly string[], template: Span): number {
  const own = membersIndentation(lines, template) ?? 0;
  const find = (text: string, indentation: number, from: number) =>
    lines.findIndex(
      (line, index) =>
        index > from && index < template.end && line.trim() === text && indentationOf(line) === indentation,
    );
  const found = (): number => {
    if (place === "volumes") return find("volumes:", own, template.first);
    const containers = find("containers:", own, template.first);
    if (place === "containers" || containers === -1) return containers;
    const proxy = lines.findIndex((line, index) => index > containers && line.trim() === `- name: ${PROXY_CONTAINER}`);
    return proxy === -1 ? -1 : find("volumeMounts:", indentationOf(lines[proxy] ?? "") + 2, proxy);
  };
  const line = found();
  if (line === -1) throw refused(`it does not contain ${PLACE_WORDS[place]}`);
  return line;
}

/** Indented as the line that they follow: a list may begin there. */
function markedLines({ text }: InsertedPart, after: string): readonly string[] {
  const indentation = " ".repeat(indentationOf(after));
  return [BEGIN, ...text.trimEnd().split("\n"), END].map((line) => indentation + line);
}
