/** The error for a command that does not exist, with the one that was probably meant. */
import { findKind } from "../../model/kinds.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { quoted } from "../../quote.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { type Command, type CommandGroup, UsageError, visibleCommands } from "./command.ts";

/** What other tools call these commands. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["list", "get"],
  ["ls", "get"],
  ["show", "get"],
  ["add", "create"],
  ["set", "apply"],
  ["update", "apply"],
  ["remove", "delete"],
  ["rm", "delete"],
  ["del", "delete"],
]);

export function unknownCommand(group: Command | CommandGroup, word: string): UsageError {
  const names = visibleCommands(group).map(({ name }) => name);
  const meant = likelyCommands(group, names, word);
  const hint =
    meant.length === 0
      ? `available commands: ${names.join(", ")}`
      : `did you mean ${meant.map((each) => `"${each}"`).join(" or ")}?`;
  return new UsageError(`Unknown command ${quoted(word)}; ${hint}`);
}

function likelyCommands(group: Command | CommandGroup, names: readonly string[], word: string): readonly string[] {
  const elsewhere = pathsTo(group, word);
  const synonym = SYNONYMS.get(word.toLowerCase());
  const known = synonym !== undefined && names.includes(synonym) ? [synonym] : [];
  if (known.length + elsewhere.length > 0) return [...known, ...elsewhere];
  if (names.includes("get") && findKind(ADMIN_KINDS, word)) return [`get ${word}`];
  const nearest = nearestName(word, names);
  return nearest === undefined ? [] : [nearest];
}

/** The commands of this name inside the group's own groups: "ipam check", "config check". */
function pathsTo(group: Command | CommandGroup, word: string): readonly string[] {
  return (group.commands ?? []).flatMap((member) => {
    const own = visibleCommands(member).some(({ name }) => name === word) ? [`${member.name} ${word}`] : [];
    return [...own, ...pathsTo(member, word).map((path) => `${member.name} ${path}`)];
  });
}
