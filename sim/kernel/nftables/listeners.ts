/** Tells the sockets that listen what a batch has changed, and who it was. */
import type { MessageWriter } from "../../../src/linux/netlink/message-writer.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
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
import { Outbox } from "./outbox.ts";
import type { NetfilterState } from "./state.ts";
import type { ChangeEvent } from "./transaction.ts";

/** NFNLGRP_NFTABLES: all changes. */
const GROUP = 7;

const TYPES = {
  table: [wire.MESSAGE.newTable, wire.MESSAGE.deleteTable],
  chain: [wire.MESSAGE.newChain, wire.MESSAGE.deleteChain],
  rule: [wire.MESSAGE.newRule, wire.MESSAGE.deleteRule],
  set: [wire.MESSAGE.newSet, wire.MESSAGE.deleteSet],
  elements: [wire.MESSAGE.newElement, wire.MESSAGE.deleteElement],
} as const;

export function tellListeners(
  state: NetfilterState,
  events: readonly ChangeEvent[],
  author: Author & { readonly port: number },
  notify: (group: number, bytes: Uint8Array) => void,
): void {
  const outbox = new Outbox(author.port, (bytes) => notify(GROUP, bytes));
  let sequence = 0;
  for (const event of events) {
    ({ sequence } = event);
    for (const write of writersOf(event)) {
      const type = TYPES[event.kind][event.isNew ? 0 : 1];
      outbox.put({ type, flags: 0, sequence }, (writer) => {
        writeFamily(writer, event.table.family, state.generation);
        write(writer);
      });
    }
  }
  outbox.put({ type: wire.MESSAGE.newGeneration, flags: 0, sequence }, (writer) => {
    writeFamily(writer, undefined, state.generation);
    describeGeneration(writer, state.generation, author);
  });
  outbox.flush();
}

type Write = (writer: MessageWriter) => void;

function* writersOf(event: ChangeEvent): Generator<Write> {
  switch (event.kind) {
    case "table":
      yield (writer) => describeTable(writer, event.table);
      return;
    case "chain":
      yield (writer) => describeChain(writer, event.table, event.chain);
      return;
    case "rule":
      yield (writer) => describeRule(writer, event.table, event.chain, event.rule);
      return;
    case "set":
      yield (writer) => describeSet(writer, event.table, event.set);
      return;
    case "elements":
      for (let next = 0; next < event.elements.length; )
        yield (writer) => {
          next += describeElements(writer, event.table, event.set, event.elements.slice(next));
        };
  }
}
