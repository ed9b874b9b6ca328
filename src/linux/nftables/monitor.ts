/**
 * Notices what other programs change in one table, by the messages that the kernel sends about every change of a
 * ruleset. Nothing waits for them: `read()` looks at what has arrived since the last call.
 */
import type { MessageCursor } from "../netlink/message-reader.ts";
import { drain, hasLost, joinGroups } from "../netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../netlink-socket.ts";
import type { TableReference } from "./ruleset.ts";
import * as wire from "./wire.ts";

/** The group of all changes (NFNLGRP_NFTABLES). */
const GROUP = 7;
/** Room for the changes of other programs, which may load rulesets of megabytes. Only what is queued takes memory. */
const BUFFER_BYTES = 16 * 1024 * 1024;
const GENERATION = { processId: 2, processName: 3 } as const;

export type Noticed =
  | { readonly kind: "nothing" }
  /** `by`: the program and its process ID. */
  | { readonly kind: "changed"; readonly by: string }
  /** Messages were lost: anything may have changed. */
  | { readonly kind: "unknown" };

export class TableMonitor {
  private readonly socket: NetlinkSocket;

  /** `ownPort`: the address of the socket whose changes are expected. */
  constructor(
    kernel: SocketOpener,
    private readonly table: TableReference,
    private readonly ownPort: number,
  ) {
    this.socket = kernel.openSocket("netfilter");
    joinGroups(this.socket, [GROUP], BUFFER_BYTES);
  }

  /** What has arrived since the last call. */
  read(): Noticed {
    const ports = new Set<number>();
    let by: string | undefined;
    const drained = drain(this.socket, (message) => {
      if (message.port === this.ownPort) return;
      if (this.isAboutTable(message)) ports.add(message.port);
      // It follows the changes of each batch.
      else if (message.type === wire.MESSAGE.newGeneration && ports.has(message.port)) by ??= readAuthor(message);
    });
    if (hasLost(drained)) return { kind: "unknown" };
    return ports.size === 0 ? { kind: "nothing" } : { kind: "changed", by: by ?? "an unknown program" };
  }

  close(): void {
    closeNetlinkSocket(this.socket);
  }

  /** The first attribute of tables, chains, rules, sets and elements is the name of the table. */
  private isAboutTable(message: MessageCursor): boolean {
    if ((message.type & 0xff00) !== wire.SUBSYSTEM || message.type === wire.MESSAGE.newGeneration) return false;
    if (message.view.getUint8(message.start) !== wire.FAMILY[this.table.family]) return false;
    const attributes = message.attributes(wire.HEADER_LENGTH);
    while (attributes.next()) if (attributes.type === wire.TABLE.name) return attributes.text() === this.table.name;
    return false;
  }
}

function readAuthor(message: MessageCursor): string {
  let [name, id] = ["", 0];
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === GENERATION.processName) name = attributes.text();
    if (attributes.type === GENERATION.processId) id = attributes.u32Big();
  }
  return `"${name}" (process ${id})`;
}
