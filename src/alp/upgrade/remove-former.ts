/**
 * Takes the sidecar of earlier releases out of the configuration of the mesh's injector: its container, its volumes and their
 * mounts. Everything else stays as it is, with what users have changed. Pure.
 */
import { FORMER_SIDECAR } from "../../identity.ts";

/** Of the socket that the proxy asks, and of the node agent's socket. */
const VOLUMES = [`${FORMER_SIDECAR}-sock`, "felix-sync"];
const NAMES: readonly string[] = [FORMER_SIDECAR, ...VOLUMES];

export function hasFormerSidecar(config: string): boolean {
  return new RegExp(`^\\s*(?:- )?name: *["']?${FORMER_SIDECAR}["']?\\s*$`, "m").test(config);
}

export function removeFormerSidecar(config: string): string {
  const lines = config.split("\n");
  const kept: string[] = [];
  for (let index = 0; index < lines.length; ) {
    const end = endOfItem(lines, index);
    if (end !== undefined && NAMES.includes(nameIn(lines.slice(index, end)) ?? "")) index = end;
    else {
      kept.push(lines[index] ?? "");
      index += 1;
    }
  }
  return kept.join("\n");
}

/** The line after the item of a list that begins at a line; `undefined` if none does. Blank lines after it are not part of it. */
function endOfItem(lines: readonly string[], first: number): number | undefined {
  if (!/^\s*- /.test(lines[first] ?? "")) return undefined;
  const indentation = indentationOf(lines[first] ?? "");
  let end = first + 1;
  for (let index = end; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    if (line.trim() === "") continue;
    if (indentationOf(line) <= indentation) break;
    end = index + 1;
  }
  return end;
}

/** The member `name` of the item itself, not of its parts. */
function nameIn(item: readonly string[]): string | undefined {
  const own = indentationOf(item[0] ?? "") + 2;
  const members = item.map((line, index) => (index === 0 ? line.replace(/^(\s*)- /, "$1  ") : line));
  const member = members.find((line) => indentationOf(line) === own && /^name:/.test(line.trim()));
  return member === undefined ? undefined : /^name: *["']?([^"'\s]+)/.exec(member.trim())?.[1];
}

function indentationOf(line: string): number {
  return line.length - line.trimStart().length;
}
