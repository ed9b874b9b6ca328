/** Answers questions about the ruleset: lists, and single objects by name. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { elementAt, elementsOf } from "./apply-element.ts";
import { findChain, findTable } from "./apply-table.ts";
import {
  type Author,
  describeChain,
  describeElements,
  describeGeneration,
  describeRule,
  describeSet,
  describeTable,
  writeFamily,
} from "./describe.ts";
import type { Outbox } from "./outbox.ts";
import { Refused, required } from "./refused.ts";
import type { Request } from "./request.ts";
import { hasOrderedKeys, type ModelSet, type ModelTable, type NetfilterState } from "./state.ts";

export class Answer {
  constructor(
    private readonly state: NetfilterState,
    private readonly request: Request,
    private readonly outbox: Outbox,
    private readonly author: Author,
  ) {}

  /** Everything that is asked for, in the order in which the kernel lists it. */
  list(): void {
    switch (this.request.message.type) {
      case wire.MESSAGE.getTable:
        for (const table of this.#tables()) this.#put(wire.MESSAGE.newTable, table, (w) => describeTable(w, table));
        break;
      case wire.MESSAGE.getChain:
        for (const table of this.#tables())
          for (const chain of table.chains.values())
            this.#put(wire.MESSAGE.newChain, table, (writer) => describeChain(writer, table, chain));
        break;
      case wire.MESSAGE.getRule:
        this.#listRules();
        break;
      case wire.MESSAGE.getSet: {
        const table = findTable(this.state, this.request);
        for (const set of table.sets.values())
          this.#put(wire.MESSAGE.newSet, table, (writer) => describeSet(writer, table, set));
        break;
      }
      case wire.MESSAGE.getElement: {
        const { table, set } = this.#set();
        this.#putElements(table, set, hasOrderedKeys(set) ? set.ordered : [...set.elements.values()]);
        break;
      }
      default:
        throw new Refused("EOPNOTSUPP");
    }
  }

  /** One object. */
  find(): void {
    switch (this.request.message.type) {
      case wire.MESSAGE.getTable: {
        const table = findTable(this.state, this.request);
        this.#put(wire.MESSAGE.newTable, table, (writer) => describeTable(writer, table));
        break;
      }
      case wire.MESSAGE.getChain: {
        const table = findTable(this.state, this.request);
        const chain = findChain(table, this.request.text(wire.CHAIN.name));
        this.#put(wire.MESSAGE.newChain, table, (writer) => describeChain(writer, table, chain));
        break;
      }
      case wire.MESSAGE.getElement:
        this.#findElements();
        break;
      case wire.MESSAGE.getGeneration:
        this.#put(wire.MESSAGE.newGeneration, undefined, (writer) =>
          describeGeneration(writer, this.state.generation, this.author),
        );
        break;
      default:
        throw new Refused("EOPNOTSUPP");
    }
    this.outbox.flush();
  }

  #findElements(): void {
    const { table, set } = this.#set();
    if (!this.request.has(wire.ELEMENT_LIST.elements)) throw new Refused("EINVAL");
    for (const wanted of elementsOf(this.request))
      this.#putElements(table, set, [required(elementAt(set, wanted), "ENOENT")]);
  }

  /** A table or chain that does not exist has none. */
  #listRules(): void {
    const [name, only] = [this.request.text(wire.RULE.table), this.request.text(wire.RULE.chain)];
    for (const table of this.#tables()) {
      if (name !== undefined && table.name !== name) continue;
      for (const chain of table.chains.values()) {
        if (only !== undefined && chain.chain.name !== only) continue;
        for (const rule of chain.rules)
          this.#put(wire.MESSAGE.newRule, table, (writer) => describeRule(writer, table, chain, rule));
      }
    }
  }

  #putElements(table: ModelTable, set: ModelSet, elements: readonly NftElement[]): void {
    for (let next = 0; next < elements.length; )
      this.#put(wire.MESSAGE.newElement, table, (writer) => {
        next += describeElements(writer, table, set, elements.slice(next));
      });
  }

  #set(): { readonly table: ModelTable; readonly set: ModelSet } {
    const table = findTable(this.state, this.request);
    const name = required(this.request.text(wire.ELEMENT_LIST.set), "EINVAL");
    return { table, set: required(table.sets.get(name), "ENOENT") };
  }

  #tables(): readonly ModelTable[] {
    const { family } = this.request;
    return [...this.state.tables.values()].filter((table) => family === undefined || table.family === family);
  }

  #put(type: number, table: ModelTable | undefined, write: Parameters<Outbox["put"]>[1]): void {
    const flags = this.request.hasFlag(FLAG.dump) ? FLAG.multipart : 0;
    this.outbox.put({ type, flags, sequence: this.request.sequence }, (writer) => {
      writeFamily(writer, table?.family, this.state.generation);
      write(writer);
    });
  }
}
