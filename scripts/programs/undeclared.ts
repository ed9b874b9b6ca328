/** Part of the gate: every program that is started stands in the table of programs. Pure. */
import { type Start, startedPrograms } from "./started-programs.ts";

/** One sentence for each place; empty when all are declared. */
export function undeclaredPrograms(
  files: ReadonlyMap<string, string>,
  declared: ReadonlySet<string>,
): readonly string[] {
  return startedPrograms(files)
    .filter(({ program }) => isOfTheMachine(program) && !declared.has(program))
    .map(sentenceOf);
}

/** A name is looked up on the machine; of paths, those below /usr are its own, the others are made by the tests. */
function isOfTheMachine(program: string): boolean {
  return !program.includes("/") || program.startsWith("/usr/");
}

function sentenceOf({ program, file, line }: Start): string {
  return `${file}:${line}: starts "${program}": declare it with its Debian package in scripts/programs/table.ts`;
}
