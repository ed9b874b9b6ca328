/** Reads a JSONPath template. What kubectl has and this tool does not is refused by name. */
import { parsePath, TextReader } from "./parse-path.ts";
import { type Template, TemplateError, type TemplatePart } from "./template.ts";

/** `{.metadata.name}{"\n"}`: expressions are in braces, everything else is text. */
export function parseTemplate(text: string): Template {
  if (!text.includes("{")) {
    throw new TemplateError(`it has no expression in braces; write for example '{.metadata.name}'`);
  }
  return readParts(new TextReader(text), "document");
}

function readParts(reader: TextReader, inside: "document" | "range"): Template {
  const parts: TemplatePart[] = [];
  for (;;) {
    const literal = reader.takeUntil("{");
    if (literal !== "") parts.push({ kind: "text", text: literal });
    if (reader.isAtEnd) {
      if (inside === "range") throw new TemplateError(`"{range …}" has no "{end}"`);
      return parts;
    }
    reader.demand("{");
    reader.skipSpace();
    if (reader.takeWord("end")) {
      closeBrace(reader);
      if (inside === "document") throw new TemplateError(`"{end}" has no "{range …}"`);
      return parts;
    }
    parts.push(...readExpression(reader));
  }
}

function readExpression(reader: TextReader): Template {
  if (reader.takeWord("range")) {
    reader.skipSpace();
    const path = parsePath(reader);
    closeBrace(reader);
    return [{ kind: "range", path, body: readParts(reader, "range") }];
  }
  const parts: TemplatePart[] = [];
  do {
    const quoted = reader.takeQuoted();
    parts.push(quoted === undefined ? { kind: "path", path: parsePath(reader) } : { kind: "text", text: quoted });
    reader.skipSpace();
  } while (!reader.isAt("}") && !reader.isAtEnd);
  closeBrace(reader);
  return parts;
}

function closeBrace(reader: TextReader): void {
  reader.skipSpace();
  reader.demand("}");
}

/** A path alone, as in custom columns: `.metadata.name`, `metadata.name` or `{.metadata.name}`. */
export function parseLonePath(text: string): ReturnType<typeof parsePath> {
  const bare = text.startsWith("{") && text.endsWith("}") ? text.slice(1, -1) : text;
  const reader = new TextReader(/^[.[$@]/.test(bare) ? bare : `.${bare}`);
  const path = parsePath(reader);
  if (!reader.isAtEnd) throw reader.unexpected("the end");
  return path;
}
