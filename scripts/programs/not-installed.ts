/**
 * Part of the gate: a target that installs only some of the programs installs every program that its files start and
 * that a bare Debian lacks. Its files: the entry and all that it imports or names, without `besides`. Pure.
 */
import { posix } from "node:path";
import ts from "typescript";
import type { Start } from "./started-programs.ts";
import { isAlwaysPresent, NOT_INSTALLED } from "./table.ts";
import type { Target } from "./targets.ts";

/** One message for each start of a program that the target does not install; empty if there is none. */
export function programsNotInstalled(
  name: string,
  target: Target,
  files: ReadonlyMap<string, string>,
  starts: readonly Start[],
): readonly string[] {
  const own = filesOf(target, files);
  const present = new Set<string>([...target.programs, ...NOT_INSTALLED]);
  return starts
    .filter(({ program, file }) => own.has(file) && !program.includes("/"))
    .filter(({ program }) => !isAlwaysPresent(program) && !present.has(program))
    .map(({ program, file, line }) => `${file}:${line}: ${name} starts "${program}" and does not install it: ${FIX}`);
}

const FIX = "add it to scripts/programs/targets.ts, or do without";

function filesOf({ entry, besides = [] }: Target, files: ReadonlyMap<string, string>): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (path: string): void => {
    const text = files.get(path);
    if (text === undefined || found.has(path) || besides.includes(path)) return;
    found.add(path);
    for (const other of namedFiles(path, text)) visit(other);
  };
  visit(entry);
  return found;
}

/** The files that it imports, other than for their types, and those beside it that it names, such as `worker.process.ts`. */
function namedFiles(path: string, text: string): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword) return;
    if (ts.isStringLiteralLike(node) && node.text.endsWith(".ts")) {
      found.push(posix.join(posix.dirname(path), node.text));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true));
  return found;
}
