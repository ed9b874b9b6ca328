/** Reads the sessions of BIRD from its reply to `show protocols all`. Pure. */
import { KIND_END } from "./session.ts";

export interface SessionStatus {
  readonly name: string;
  /** `node-to-node mesh`, `node specific` or `global`. */
  readonly type: string;
  /** The node or the BGPPeer that it comes from. */
  readonly peer: string;
  readonly address: string;
  readonly peerAs: string;
  /** `up`, `start`, `down`. */
  readonly state: string;
  /** When it entered this state. */
  readonly since: string;
  /** The state of BGP and the last error: `Established`, `Active Socket: Connection refused`. */
  readonly info: string;
  readonly routes: { readonly imported: number; readonly exported: number };
  /** The peer has sent more routes than are accepted; some are missing until the session begins again. */
  readonly isLimitHit: boolean;
}

interface Protocol {
  readonly head: RegExpExecArray;
  readonly details: readonly string[];
}

/** Name, protocol, table, state, since (a date and a time), info. */
const HEAD = /^(\S+)\s+BGP\s+\S+\s+(\S+)\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\S+)\s*(.*)$/;

/** `lines`: of the reply. Protocols other than BGP are left out. */
export function readSessions(lines: readonly string[]): readonly SessionStatus[] {
  return protocolsOf(lines).map(({ head: [, name = "", state = "", since = "", info = ""], details }) => {
    const [type = "", ...peer] = detail(details, "Description").split(KIND_END);
    const [, imported, exported] =
      /(\d+) imported(?:, \d+ filtered)?, (\d+) exported/.exec(detail(details, "Routes")) ?? [];
    return {
      name,
      type,
      peer: peer.join(KIND_END),
      address: detail(details, "Neighbor address"),
      peerAs: detail(details, "Neighbor AS"),
      state,
      since,
      info: info.trim().replaceAll(/\s+/g, " "),
      routes: { imported: Number(imported ?? 0), exported: Number(exported ?? 0) },
      isLimitHit: detail(details, "Import limit").endsWith("[HIT]"),
    };
  });
}

function protocolsOf(lines: readonly string[]): readonly Protocol[] {
  const found: { head: RegExpExecArray; details: string[] }[] = [];
  let isInside = false;
  for (const line of lines) {
    if (line.startsWith(" ")) {
      if (isInside) found.at(-1)?.details.push(line);
      continue;
    }
    const head = HEAD.exec(line);
    isInside = head !== null;
    if (head !== null) found.push({ head, details: [] });
  }
  return found;
}

function detail(details: readonly string[], name: string): string {
  const line = details.find((each) => each.trimStart().startsWith(`${name}:`));
  return line === undefined ? "" : line.slice(line.indexOf(":") + 1).trim();
}
