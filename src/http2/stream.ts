/** A stream, as its user and its connection see it. */
import type { Outgoing } from "./outgoing.ts";

/** What a stream hears. After `end` or `failed` nothing comes any more. */
export interface StreamEvents {
  headers(fields: ReadonlyMap<string, string>): void;
  data(bytes: Uint8Array): void;
  end(): void;
  failed(error: unknown): void;
}

export interface Opening {
  /** As `encodeFields()` writes them. */
  readonly fields: Uint8Array;
  readonly body: Uint8Array;
  /** `more to come`: this side of the stream stays open until it is cancelled. */
  readonly more: "last" | "more to come";
}

export interface Stream {
  /** Lets the other side send as much again. */
  taken(bytes: number): void;
  /** Nothing of it is heard any more. */
  cancel(): void;
}

/** What the connection knows of it. */
export interface OpenStream {
  readonly id: number;
  readonly events: StreamEvents;
  readonly outgoing: Outgoing;
  /** Taken, and not yet told to the other side. */
  untold: number;
}
