/**
 * Evaluates an expression of the source text as a command: its words, as far as
 * they are known. Follows constants, parameters, imports (by name) and functions
 * that return a command; everything else is unknown.
 */
import ts from "typescript";
import type { Item } from "./command-items.ts";
import { UNKNOWN } from "./shell-commands.ts";

/** The source of a word that is only known at the call: a parameter of a function, or a property of it. */
export interface Parameter {
  readonly owner: ts.SignatureDeclaration;
  readonly index: number;
  readonly property: string | undefined;
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
    const source = this.#propertySource(inner);
    return source === undefined ? SOME : [[{ kind: "parameter", source, many: true }]];
  }

  /** The same for a property of an object; empty if the object does not have it. */
  propertyOf(object: ts.Expression, property: string, as: "words" | "text", depth = 0): Alternatives {
    const itself = (node: ts.Expression) => (as === "words" ? this.wordsOf(node) : this.textsOf(node));
    const ofObject = (node: ts.Expression) => this.propertyOf(node, property, as, depth + 1);
    const inner = bare(object);
    if (depth > DEPTH) return [];
    if (ts.isConditionalExpression(inner)) return [...ofObject(inner.whenTrue), ...ofObject(inner.whenFalse)];
    if (ts.isObjectLiteralExpression(inner)) {
      return inner.properties.flatMap((each) => {
        if (ts.isSpreadAssignment(each)) return ofObject(each.expression);
        if (!ts.isPropertyAssignment(each) && !ts.isShorthandPropertyAssignment(each)) return [];
        if (each.name.getText() !== property) return [];
        return itself(ts.isPropertyAssignment(each) ? each.initializer : each.name);
      });
    }
    const found = ts.isIdentifier(inner) ? this.#declarationOf(inner) : undefined;
    if (found === undefined) return [];
    if (ts.isParameter(found)) {
      return [[{ kind: "parameter", source: { ...parameterOf(found), property }, many: as === "words" }]];
    }
    return ts.isVariableDeclaration(found) && found.initializer ? ofObject(found.initializer) : [];
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
    const property = this.#propertySource(inner);
    if (property !== undefined) return [[{ kind: "parameter", source: property, many: false }]];
    if (!ts.isIdentifier(inner)) return one;
    const found = this.#declarationOf(inner);
    if (found === undefined) return one;
    if (ts.isParameter(found)) return [[{ kind: "parameter", source: parameterOf(found), many: false }]];
    if (ts.isBindingElement(found)) {
      const source = this.#unpackedSource(found);
      const given: Alternatives = source === undefined ? one : [[{ kind: "parameter", source, many: false }]];
      return found.initializer ? [...given, ...this.textsOf(found.initializer, depth + 1)] : given;
    }
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
    if (!ts.isBindingElement(found)) return SOME;
    const source = this.#unpackedSource(found);
    const given: Alternatives = source === undefined ? SOME : [[{ kind: "parameter", source, many: true }]];
    return found.initializer ? [...given, ...this.wordsOf(found.initializer, depth + 1)] : given;
  }

  /** `options.under` of a parameter `options`. */
  #propertySource(node: ts.Expression): Parameter | undefined {
    if (!ts.isPropertyAccessExpression(node) || !ts.isIdentifier(node.expression)) return undefined;
    const found = this.#declarationOf(node.expression);
    return found !== undefined && ts.isParameter(found)
      ? { ...parameterOf(found), property: node.name.text }
      : undefined;
  }

  /** `under` of a parameter `{ under }`, or of `const { under } = options` of a parameter `options`. */
  #unpackedSource(element: ts.BindingElement): Parameter | undefined {
    const property = propertyNameOf(element);
    const holder = element.parent.parent;
    if (property === undefined || ts.isBindingElement(holder)) return undefined;
    if (ts.isParameter(holder)) return { ...parameterOf(holder), property };
    const from = holder.initializer && ts.isIdentifier(holder.initializer) ? holder.initializer : undefined;
    const found = from === undefined ? undefined : this.#declarationOf(from);
    return found !== undefined && ts.isParameter(found) ? { ...parameterOf(found), property } : undefined;
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
      const next =
        item.kind === "parameter" && item.source.owner === called ? this.#given(item, call, depth) : [[item]];
      found = found.flatMap((before) => next.map((after) => [...before, ...after])).slice(0, LIMIT);
    }
    return found;
  }

  #given(item: Item<Parameter> & { readonly kind: "parameter" }, call: ts.CallExpression, depth: number): Alternatives {
    const { index, property } = item.source;
    const given = call.arguments[index];
    if (given === undefined) return [[item]];
    if (property !== undefined) return this.propertyOf(given, property, item.many ? "words" : "text", depth + 1);
    return item.many ? this.wordsOf(given, depth + 1) : this.textsOf(given, depth + 1);
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

/** The variable, parameter, function or part of an unpacked one that a name refers to, if its own file declares it. */
export function declarationInScope(name: ts.Identifier): ts.Node | undefined {
  for (let scope: ts.Node | undefined = name.parent; scope !== undefined; scope = scope.parent) {
    if (ts.isFunctionLike(scope)) {
      const found = scope.parameters.map((each) => declaredAs(each, name.text)).find((each) => each !== undefined);
      if (found !== undefined) return found;
    }
    if (!ts.isBlock(scope) && !ts.isSourceFile(scope)) continue;
    for (const statement of scope.statements) {
      if (ts.isFunctionDeclaration(statement) && statement.name?.text === name.text) return statement;
      if (!ts.isVariableStatement(statement)) continue;
      const { declarations } = statement.declarationList;
      const found = declarations.map((each) => declaredAs(each, name.text)).find((each) => each !== undefined);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function declaredAs(declaration: ts.ParameterDeclaration | ts.VariableDeclaration, text: string): ts.Node | undefined {
  const { name } = declaration;
  if (ts.isIdentifier(name)) return name.text === text ? declaration : undefined;
  if (!ts.isObjectBindingPattern(name)) return undefined;
  return name.elements.find(({ name: own }) => ts.isIdentifier(own) && own.text === text);
}

/** Of `{ name }` and `{ name: other }`: `name`. */
function propertyNameOf({ propertyName, name }: ts.BindingElement): string | undefined {
  const property = propertyName ?? name;
  return ts.isIdentifier(property) ? property.text : undefined;
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
    property: undefined,
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
