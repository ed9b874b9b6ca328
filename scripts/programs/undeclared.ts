/** Part of the gate: every program that is started is in the table of programs. Pure. */
import type { Start } from "./started-programs.ts";

/** One message for each undeclared program; empty if all are declared. */
export function undeclaredPrograms(starts: readonly Start[], declared: ReadonlySet<string>): readonly string[] {
  return starts.filter(({ program }) => isInstalledProgram(program) && !declared.has(program)).map(messageOf);
}

/** A name without a slash is looked up in PATH; of paths, those under /usr are installed, the others are created by tests. */
function isInstalledProgram(program: string): boolean {
  return !program.includes("/") || program.startsWith("/usr/");
}

function messageOf({ program, file, line }: Start): string {
  return `${file}:${line}: starts "${program}": declare it with its Debian package in scripts/programs/table.ts`;
}
