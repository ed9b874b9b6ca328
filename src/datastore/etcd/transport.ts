/**
 * The requests of this client to etcd, independent of their encoding: the JSON
 * gateway and gRPC each implement `Transport`.
 *
 * Only transactions, watches and authentication are needed: a read of many keys
 * is a transaction of ranges, a commit is a transaction with comparisons.
 */
import type { Entry } from "../datastore.ts";

export interface StoredEntry extends Entry {
  /** The revision at which the key was created; updates do not change it. */
  readonly createRevision: string;
}

export type Operation =
  | {
      readonly kind: "range";
      readonly key: string;
      /** The first key after the range; absent: only `key`; `FROM_KEY_ON`: no end. */
      readonly end?: string;
      readonly limit?: number;
      /** Read as of this past revision. */
      readonly revision?: string;
      readonly keysOnly?: true;
    }
  | { readonly kind: "put"; readonly key: string; readonly value: string }
  | { readonly kind: "delete"; readonly key: string };

export const FROM_KEY_ON = "\u{0000}";

export type Comparison =
  /** True if the key was last modified at the revision; `ABSENT`: if it does not exist. */
  | { readonly kind: "unchanged"; readonly key: string; readonly revision: string }
  /** True if no key from `key` up to `end` was modified after the revision. */
  | { readonly kind: "none after"; readonly key: string; readonly end: string; readonly revision: string };

export const ABSENT = "0";

export interface Transaction {
  readonly comparisons: readonly Comparison[];
  readonly success: readonly Operation[];
  readonly failure: readonly Operation[];
}

export interface TransactionResponse {
  readonly revision: string;
  readonly succeeded: boolean;
  /** The results of the ranges in the branch that was executed, in order. */
  readonly ranges: readonly (readonly StoredEntry[])[];
}

export interface WatchRequest {
  readonly key: string;
  readonly end?: string;
  readonly startRevision: string;
}

export type WatchedChange =
  | { readonly kind: "put"; readonly entry: StoredEntry }
  | { readonly kind: "delete"; readonly key: string; readonly revision: string };

export interface WatchResponse {
  readonly revision: string;
  readonly created: boolean;
  readonly canceled: boolean;
  /** If not "0", the history before this revision is compacted. */
  readonly compactRevision: string;
  readonly cancelReason: string;
  readonly changes: readonly WatchedChange[];
}

export interface User {
  readonly name: string;
  readonly password: string;
}

/** The address without credentials, the user's token, and the time limit of the attempt. */
export interface Call {
  readonly url: string;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the `Date` header of the response, as soon as it is there. */
  readonly heard?: (date: string | null | undefined) => void;
}

/** Every method makes one attempt at one endpoint, and throws `EtcdFailure`. */
export interface Transport {
  transact(call: Call, transaction: Transaction): Promise<TransactionResponse>;
  watch(call: Call, request: WatchRequest): AsyncIterable<WatchResponse>;
  /** Returns a token. */
  authenticate(call: Call, user: User): Promise<string>;
  close(): void;
}
