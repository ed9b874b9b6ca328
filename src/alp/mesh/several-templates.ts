/** Adds our own template to those of a mesh that merges several into a pod, and to those it uses by default. Pure. */
import { MESH_TEMPLATE, OWN_TEMPLATE, ownTemplate, type SidecarRelease } from "./template-parts.ts";
import { membersIndentation, type Span, spanOfKey, spanOfMember } from "./yaml-lines.ts";

const DEFAULTS = "defaultTemplates";

/** `lines`: a configuration whose `templates` are literal blocks. */
export function insertOwnTemplate(lines: readonly string[], release: SidecarRelease): readonly string[] {
  return withDefault(withTemplate(withoutOwn(lines), release));
}

/** The list of default templates stays, without ours: the mesh's own remain. */
export function withoutOwnTemplate(lines: readonly string[]): readonly string[] {
  const span = spanOfKey(lines, DEFAULTS);
  const names = span === undefined ? [] : namesIn(lines, span);
  if (span === undefined || !names.includes(OWN_TEMPLATE)) return withoutOwn(lines);
  const line = `${DEFAULTS}: [${names.filter((name) => name !== OWN_TEMPLATE).join(", ")}]`;
  return withoutOwn(lines.toSpliced(span.first, span.end - span.first, line));
}

function withoutOwn(lines: readonly string[]): readonly string[] {
  const templates = spanOfKey(lines, "templates");
  const own = templates === undefined ? undefined : spanOfMember(lines, templates, OWN_TEMPLATE);
  return own === undefined ? lines : lines.toSpliced(own.first, own.end - own.first);
}

function withTemplate(lines: readonly string[], release: SidecarRelease): readonly string[] {
  const templates = spanOfKey(lines, "templates") ?? { first: -1, end: lines.length };
  const indentation = " ".repeat(membersIndentation(lines, templates) ?? 2);
  const text = ownTemplate(release).trimEnd().split("\n");
  const member = [`${indentation}${OWN_TEMPLATE}: |`, ...text.map((line) => `${indentation}  ${line}`)];
  return lines.toSpliced(templates.end, 0, ...member);
}

function withDefault(lines: readonly string[]): readonly string[] {
  const span = spanOfKey(lines, DEFAULTS);
  const names = span === undefined ? [MESH_TEMPLATE] : namesIn(lines, span);
  if (names.includes(OWN_TEMPLATE)) return lines;
  const line = `${DEFAULTS}: [${[...names, OWN_TEMPLATE].join(", ")}]`;
  return span === undefined ? [line, ...lines] : lines.toSpliced(span.first, span.end - span.first, line);
}

/** The mesh uses its own if none is named. */
function namesIn(lines: readonly string[], { first, end }: Span): readonly string[] {
  const value: unknown = Bun.YAML.parse(lines.slice(first, end).join("\n"));
  const names: unknown = typeof value === "object" && value !== null ? Reflect.get(value, DEFAULTS) : undefined;
  return Array.isArray(names) && names.length > 0 ? names.map(String) : [MESH_TEMPLATE];
}
