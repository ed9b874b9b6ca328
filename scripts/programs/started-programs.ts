/**
 * Finds the programs that the TypeScript files of tests, benchmarks and scripts
 * start, from their source text.
 *
 *   Bun.spawn(["nsenter", …, "tc"])   a call that starts something: its programs
 *   runIn(netns, ["tc", …])           a function that passes a parameter to such a call counts as such a call itself
 *
 * Functions are identified by their name: a method of an object counts as the
 * method with that name of every object. A command that is only built at run
 * time is not found; `make bare` shows those.
 */
import ts from "typescript";
import { findInScript, findPrograms, type Role } from "./command-items.ts";
import { declarationInScope, functionBehind, type Parameter, SourceValues } from "./source-values.ts";

export interface Start {
  readonly program: string;
  readonly file: string;
  readonly line: number;
}

/** How a call passes the command that it starts. */
interface Handed {
  readonly index: number;
  /** The property of an object that contains it. */
  readonly property?: string | undefined;
  readonly role: Role | "line";
  readonly isRest: boolean;
}

/** The calls that start a program directly, or look for one. */
const FIRST: readonly (readonly [name: string, handed: Handed])[] = [
  ["Bun.spawn", { index: 0, role: "command", isRest: false }],
  ["Bun.spawnSync", { index: 0, role: "command", isRest: false }],
  ["Bun.which", { index: 0, role: "program", isRest: false }],
];

/** `files`: the text of each, by its path. */
export function startedPrograms(files: ReadonlyMap<string, string>): readonly Start[] {
  const sources = [...files].map(([path, text]) => ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true));
  const scan = new Scan(sources);
  while (scan.pass());
  return scan.starts();
}

class Scan {
  readonly #calls: readonly ts.CallExpression[];
  readonly #values: SourceValues;
  readonly #exports = new Map<string, ts.Node>();
  /** By the name of the function or `.name` of the method, and the text of what is passed. */
  readonly #handed = new Map<string, Map<string, Handed>>(
    FIRST.map(([name, handed]) => [name, new Map([["first", handed]])]),
  );
  readonly #starts = new Map<string, Start>();

  constructor(sources: readonly ts.SourceFile[]) {
    const calls: ts.CallExpression[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node)) calls.push(node);
      ts.forEachChild(node, visit);
    };
    for (const source of sources) {
      for (const statement of source.statements) this.#rememberExports(statement);
      visit(source);
    }
    this.#calls = calls;
    this.#values = new SourceValues(this.#exports);
  }

  starts(): readonly Start[] {
    return [...this.#starts.values()].toSorted((left, right) => left.program.localeCompare(right.program));
  }

  /** Visits every call once; returns true if it found another function that starts something. */
  pass(): boolean {
    let learned = false;
    for (const call of this.#calls) {
      for (const handed of this.#handedBy(call)) if (this.#look(call, handed)) learned = true;
    }
    return learned;
  }

  #rememberExports(statement: ts.Statement): void {
    if (!ts.canHaveModifiers(statement)) return;
    if (!ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return;
    if (ts.isFunctionDeclaration(statement) && statement.name) this.#exports.set(statement.name.text, statement);
    if (!ts.isVariableStatement(statement)) return;
    for (const each of statement.declarationList.declarations) {
      if (ts.isIdentifier(each.name)) this.#exports.set(each.name.text, each);
    }
  }

  #handedBy(call: ts.CallExpression): readonly Handed[] {
    const name = this.#nameOf(call.expression);
    return name === undefined ? [] : [...(this.#handed.get(name)?.values() ?? [])];
  }

  #nameOf(called: ts.Expression): string | undefined {
    if (ts.isPropertyAccessExpression(called)) {
      const whole = `${called.expression.getText()}.${called.name.text}`;
      return this.#handed.has(whole) ? whole : `.${called.name.text}`;
    }
    if (!ts.isIdentifier(called)) return undefined;
    const behind = functionBehind(declarationInScope(called)) ?? functionBehind(this.#exports.get(called.text));
    return behind === undefined ? undefined : nameOfFunction(behind);
  }

  #look(call: ts.CallExpression, { index, property, role, isRest }: Handed): boolean {
    let learned = false;
    const found = {
      program: (program: string) => this.#remember(program, call),
      parameter: (source: Parameter, as: Role) => {
        if (this.#learn(source, as)) learned = true;
      },
    };
    const given = isRest ? call.arguments.slice(index) : call.arguments.slice(index, index + 1);
    const [first] = given;
    if (first === undefined) return false;
    if (isRest) {
      const items = given.map((each) =>
        ts.isSpreadElement(each)
          ? (this.#values.wordsOf(each.expression)[0] ?? [])
          : (this.#values.textsOf(each)[0] ?? []),
      );
      findPrograms(items.flat(), found);
      return learned;
    }
    const as = role === "command" ? "words" : "text";
    const whole = () => (as === "words" ? this.#values.wordsOf(first) : this.#values.textsOf(first));
    const alternatives = property === undefined ? whole() : this.#values.propertyOf(first, property, as);
    for (const words of alternatives) {
      const [item] = words;
      if (role === "command" || role === "program") findPrograms(words, found);
      else if (item?.kind === "text") {
        if (role === "script") findInScript(item.text, found);
        else
          findPrograms(
            item.text.split(" ").map((text) => ({ kind: "text", text }) as const),
            found,
          );
      } else if (item?.kind === "parameter" && this.#learn({ ...item.source, isLine: role === "line" }, "script")) {
        learned = true;
      }
    }
    return learned;
  }

  #remember(program: string, call: ts.CallExpression): void {
    const source = call.getSourceFile();
    const line = source.getLineAndCharacterOfPosition(call.getStart()).line + 1;
    this.#starts.set(`${program} ${source.fileName}:${line}`, { program, file: source.fileName, line });
  }

  #learn({ owner, index, property, isRest, isLine }: Parameter, as: Role): boolean {
    const name = nameOfFunction(owner);
    if (name === undefined) return false;
    const handed: Handed = { index, property, role: isLine ? "line" : as, isRest };
    const known = this.#handed.get(name) ?? new Map<string, Handed>();
    const key = JSON.stringify(handed);
    if (known.has(key)) return false;
    this.#handed.set(name, known.set(key, handed));
    return true;
  }
}

/** `file#name` of a function, `.name` of a method or of a function in a property. */
function nameOfFunction(node: ts.SignatureDeclaration): string | undefined {
  if (ts.isFunctionDeclaration(node) && node.name) return `${node.getSourceFile().fileName}#${node.name.text}`;
  if (ts.isMethodDeclaration(node) && ts.isIdentifier(node.name)) return `.${node.name.text}`;
  const holder = node.parent;
  if (ts.isPropertyAssignment(holder) && ts.isIdentifier(holder.name)) return `.${holder.name.text}`;
  if (ts.isVariableDeclaration(holder) && ts.isIdentifier(holder.name)) {
    return `${node.getSourceFile().fileName}#${holder.name.text}`;
  }
  return undefined;
}
