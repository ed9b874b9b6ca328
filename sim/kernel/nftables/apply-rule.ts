/** Messages of a batch about rules. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import type { Expression } from "../../../src/linux/nftables/expression.ts";
import { readExpressions } from "../../../src/linux/nftables/expression-reader.ts";
import { EXPRESSION } from "../../../src/linux/nftables/expression-wire.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { findSet } from "./apply-set.ts";
import { commentOf, findChain, findTable } from "./apply-table.ts";
import { ExpressionCheck } from "./check-expressions.ts";
import { Refused, required } from "./refused.ts";
import type { Request } from "./request.ts";
import type { ModelTable } from "./state.ts";
import type { Transaction } from "./transaction.ts";

export function addRule(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const chain = findChain(table, request.text(wire.RULE.chain));
  if (!request.hasFlag(FLAG.create)) throw new Refused("EINVAL");
  const list = request.nested(wire.RULE.expressions);
  const read = list === undefined ? [] : readExpressions(list);
  const handle = ++table.lastHandle;
  const details = detailsOf(request);
  const check = new ExpressionCheck(table);
  const expressions = read.map((expression, index) => {
    const resolved = resolve(transaction, table, expression, details[index] ?? {});
    check.check(resolved);
    return resolved;
  });
  const comment = commentOf(request.bytes(wire.RULE.userdata));
  const rule = { handle, ...comment, expressions };
  if (request.hasFlag(FLAG.append)) transaction.addRule(table, chain, rule);
  else throw new Refused("EOPNOTSUPP");
}

export function deleteRules(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const name = request.text(wire.RULE.chain);
  if (name === undefined) {
    for (const chain of table.chains.values()) transaction.removeRules(table, chain);
    return;
  }
  const chain = findChain(table, name);
  const handle = request.long(wire.RULE.handle);
  if (handle === undefined) {
    transaction.removeRules(table, chain);
    return;
  }
  const rule = chain.rules.find((each) => each.handle === handle);
  transaction.removeRule(table, chain, required(rule, "ENOENT"));
}

/** The level of lines in the kernel's log, if none is given. */
const WARNING = 4;

/** What a decoder of replies leaves out. */
interface Details {
  setNumber?: number;
  packets?: number;
  bytes?: number;
}

function resolve(
  transaction: Transaction,
  table: ModelTable,
  expression: Expression,
  { setNumber, packets = 0, bytes = 0 }: Details,
): Expression {
  if (expression.kind === "counter") return { kind: "counter", packets, bytes };
  if (expression.kind === "log") return expression.group === undefined ? { level: WARNING, ...expression } : expression;
  if (expression.kind !== "lookup" || typeof expression.set !== "string") return expression;
  return { ...expression, set: findSet(transaction, table, expression.set, setNumber).set.name };
}

function detailsOf(request: Request): readonly Details[] {
  const all: Details[] = [];
  const list = request.nested(wire.RULE.expressions);
  while (list?.next()) {
    const entry = list.nested();
    const details: Details = {};
    let name = "";
    while (entry.next()) {
      if (entry.type === EXPRESSION.name) name = entry.text();
      if (entry.type !== EXPRESSION.data) continue;
      const fields = entry.nested();
      while (fields.next()) {
        if (name === "lookup" && fields.type === EXPRESSION.lookup.setId) details.setNumber = fields.u32Big();
        if (name === "counter" && fields.type === EXPRESSION.counter.packets) details.packets = Number(fields.u64Big());
        if (name === "counter" && fields.type === EXPRESSION.counter.bytes) details.bytes = Number(fields.u64Big());
      }
    }
    all.push(details);
  }
  return all;
}
