/** What rules write about a packet, and later rules read. For tests. */

export type ConnectionState = "new" | "established" | "related" | "invalid" | "untracked";

export interface PacketMarks {
  mark: Uint8Array;
  state: ConnectionState;
  connectionMark: Uint8Array;
  /** Of the connection: only bits are added. */
  label: Uint8Array;
  /** Which ends of the connection are translated. */
  readonly translated: Set<"source" | "destination">;
  /** What the last rule demanded that translates addresses. The caller carries it out, once. */
  translation?: Translation | undefined;
}

/** Absent: as it is. `masquerade`: the address of the interface by which the packet leaves. */
export interface Translation {
  readonly end: "source" | "destination";
  readonly address?: Uint8Array | "masquerade";
  readonly port?: Uint8Array;
}

export function unmarked(state: ConnectionState = "new"): PacketMarks {
  return {
    ...{ mark: new Uint8Array(4), state, translated: new Set() },
    ...{ connectionMark: new Uint8Array(4), label: new Uint8Array(16) },
  };
}
