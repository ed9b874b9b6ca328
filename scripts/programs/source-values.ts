/**
 * Evaluates an expression of the source text as a command: its words, as far as
 * they are known. Follows constants, parameters, imports (by name) and functions
 * that return a command; everything else is unknown.
 */
import ts from "typescript";
import type { Item } from "./command-items.ts";
import { UNKNOWN } from "./shell-commands.ts";

/** The source of a word that is only known at the call: a parameter of a function. */
export interface Parameter {
  readonly owner: ts.SignatureDeclaration;
  readonly index: number;
  readonly isRest: boolean;
  /** The text is split at its spaces. */
  readonly isLine: boolean;
}

export type Words = readonly Item<Parameter>[];
/** One for each branch of `? :` and `??`. */
export type Alternatives = readonly Words[];

const SOME: Alternatives = [[{ kind: "unknown", many: true }]];
const LIMIT = 40;
const DEPTH = 12;

/** Exported constants and functions of all files, by name. */
export type Exports = ReadonlyMap<string, ts.Node>;

export class SourceValues {
  readonly #exports: Exports;

  constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** The words of a command given as an array. */
  wordsOf(node: ts.Expression, depth = 0): Alternatives {
    if (depth > DEPTH) return SOME;
    const inner = bare(node);
    if (ts.isArrayLiteralExpression(inner)) return this.#arrayOf(inner, depth);
    if (ts.isConditionalExpression(inner)) {
      return [...this.wordsOf(inner.whenTrue, depth + 1), ...this.wordsOf(inner.whenFalse, depth + 1)];
    }
    if (isEither(inner)) return [...this.wordsOf(inner.left, depth + 1), ...this.wordsOf(inner.right, depth + 1)];
    if (ts.isIdentifier(inner)) return this.#namedWords(inner, depth);
    if (ts.isCallExpression(inner)) return this.#calledWords(inner, depth);
    return SOME;
  }

  /** One word or one script: its texts, as far as they are known. */
  textsOf(node: ts.Expression, depth = 0): Alternatives {
    const one: Alternatives = [[{ kind: "unknown", many: false }]];
    const inner = bare(node);
    if (depth > DEPTH) return one;
    if (ts.isStringLiteralLike(inner)) return [[{ kind: "text", text: inner.text }]];
    if (ts.isTemplateExpression(inner)) return [[{ kind: "text", text: this.#templateOf(inner, depth) }]];
    if (ts.isConditionalExpression(inner)) {
      return [...this.textsOf(inner.whenTrue, depth + 1), ...this.textsOf(inner.whenFalse, depth + 1)];
    }
    if (isEither(inner)) return [...this.textsOf(inner.left, depth + 1), ...this.textsOf(inner.right, depth + 1)];
    if (isMethodCall(inner, "join")) {
      const separator = inner.arguments[0];
      const glue = separator !== undefined && ts.isStringLiteralLike(separator) ? separator.text : ",";
      return this.wordsOf(inner.expression.expression, depth + 1).map((words) => [
        { kind: "text", text: words.map((item) => (item.kind === "text" ? item.text : UNKNOWN)).join(glue) },
      ]);
    }
    if (!ts.isIdentifier(inner)) return one;
    const found = this.#declarationOf(inner);
    if (found === undefined) return one;
    if (ts.isParameter(found)) return [[{ kind: "parameter", source: parameterOf(found), many: false }]];
    if (ts.isVariableDeclaration(found) && found.initializer) return this.textsOf(found.initializer, depth + 1);
    return one;
  }

  #templateOf(template: ts.TemplateExpression, depth: number): string {
    const spans = template.templateSpans.map(({ expression, literal }) => {
      const [[item] = []] = this.textsOf(expression, depth + 1);
      return `${item?.kind === "text" ? item.text : UNKNOWN}${literal.text}`;
    });
    return template.head.text + spans.join("");
  }

  #arrayOf(array: ts.ArrayLiteralExpression, depth: number): Alternatives {
    let found: Alternatives = [[]];
    for (const element of array.elements) {
      const next = ts.isSpreadElement(element)
        ? this.wordsOf(element.expression, depth + 1)
        : this.textsOf(element, depth + 1);
      found = found.flatMap((before) => next.map((after) => [...before, ...after])).slice(0, LIMIT);
    }
    return found;
  }

  #namedWords(name: ts.Identifier, depth: number): Alternatives {
    const found = this.#declarationOf(name);
    if (found === undefined) return SOME;
    if (ts.isParameter(found)) return [[{ kind: "parameter", source: parameterOf(found), many: true }]];
    if (ts.isVariableDeclaration(found) && found.initializer) return this.wordsOf(found.initializer, depth + 1);
    return SOME;
  }

  #calledWords(call: ts.CallExpression, depth: number): Alternatives {
    if (isMethodCall(call, "concat")) {
      const [other] = call.arguments;
      const first = this.wordsOf(call.expression.expression, depth + 1);
      const second = other === undefined ? [[]] : this.wordsOf(other, depth + 1);
      return first.flatMap((before) => second.map((after) => [...before, ...after])).slice(0, LIMIT);
    }
    if (isMethodCall(call, "split")) return this.#splitWords(call.expression.expression, depth);
    const called = functionBehind(ts.isIdentifier(call.expression) ? this.#declarationOf(call.expression) : undefined);
    if (called === undefined) return SOME;
    return returnsOf(called)
      .flatMap((returned) => this.wordsOf(returned, depth + 1))
      .flatMap((words) => this.#withArguments(words, called, call, depth));
  }

  /** The return value of a called function, with its parameters replaced by the arguments. */
  #withArguments(words: Words, called: ts.Node, call: ts.CallExpression, depth: number): Alternatives {
    let found: Alternatives = [[]];
    for (const item of words) {
      const given =
        item.kind === "parameter" && item.source.owner === called ? call.arguments[item.source.index] : undefined;
      const next: Alternatives =
        given === undefined || item.kind !== "parameter"
          ? [[item]]
          : item.many
            ? this.wordsOf(given, depth + 1)
            : this.textsOf(given, depth + 1);
      found = found.flatMap((before) => next.map((after) => [...before, ...after])).slice(0, LIMIT);
    }
    return found;
  }

  #splitWords(text: ts.Expression, depth: number): Alternatives {
    return this.textsOf(text, depth + 1).map(([item]): Words => {
      if (item?.kind === "text") return item.text.split(" ").map((word) => ({ kind: "text", text: word }));
      if (item?.kind === "parameter") return [{ ...item, many: true, source: { ...item.source, isLine: true } }];
      return [{ kind: "unknown", many: true }];
    });
  }

  #declarationOf(name: ts.Identifier): ts.Node | undefined {
    return declarationInScope(name) ?? this.#exports.get(name.text);
  }
}

/** The variable, parameter or function that a name refers to, if its own file declares it. */
export function declarationInScope(name: ts.Identifier): ts.Node | undefined {
  for (let scope: ts.Node | undefined = name.parent; scope !== undefined; scope = scope.parent) {
    if (ts.isFunctionLike(scope)) {
      const found = scope.parameters.find(({ name: own }) => ts.isIdentifier(own) && own.text === name.text);
      if (found !== undefined) return found;
    }
    if (!ts.isBlock(scope) && !ts.isSourceFile(scope)) continue;
    for (const statement of scope.statements) {
      if (ts.isFunctionDeclaration(statement) && statement.name?.text === name.text) return statement;
      if (!ts.isVariableStatement(statement)) continue;
      const found = statement.declarationList.declarations.find(
        ({ name: own }) => ts.isIdentifier(own) && own.text === name.text,
      );
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

export function functionBehind(node: ts.Node | undefined): ts.FunctionLikeDeclaration | undefined {
  if (node === undefined) return undefined;
  if (ts.isFunctionDeclaration(node)) return node;
  const value = ts.isVariableDeclaration(node) && node.initializer ? bare(node.initializer) : undefined;
  return value !== undefined && (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) ? value : undefined;
}

function returnsOf(called: ts.FunctionLikeDeclaration): readonly ts.Expression[] {
  const { body } = called;
  if (body === undefined) return [];
  if (!ts.isBlock(body)) return [body];
  return body.statements.flatMap((each) => (ts.isReturnStatement(each) && each.expression ? [each.expression] : []));
}

function parameterOf(declaration: ts.ParameterDeclaration): Parameter {
  const owner = declaration.parent;
  return {
    owner,
    index: owner.parameters.indexOf(declaration),
    isRest: declaration.dotDotDotToken !== undefined,
    isLine: false,
  };
}

/** Without type assertions and parentheses. */
function bare(node: ts.Expression): ts.Expression {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) {
    return bare(node.expression);
  }
  return node;
}

function isEither(node: ts.Expression): node is ts.BinaryExpression {
  if (!ts.isBinaryExpression(node)) return false;
  const { kind } = node.operatorToken;
  return kind === ts.SyntaxKind.QuestionQuestionToken || kind === ts.SyntaxKind.BarBarToken;
}

function isMethodCall(
  node: ts.Expression,
  name: string,
): node is ts.CallExpression & { readonly expression: ts.PropertyAccessExpression } {
  return (
    ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === name
  );
}
