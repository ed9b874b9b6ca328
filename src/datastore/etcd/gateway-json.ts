/**
 * The messages of etcd's JSON gateway. Keys and values are base64, 64-bit
 * numbers are text and stay text, and fields of value zero are left out.
 */
import type {
  Comparison,
  Operation,
  StoredEntry,
  Transaction,
  TransactionResponse,
  WatchedChange,
  WatchRequest,
  WatchResponse,
} from "./transport.ts";

export function encodeTransaction({ comparisons, success, failure }: Transaction): string {
  return JSON.stringify({
    compare: comparisons.map(encodeComparison),
    success: success.map(encodeOperation),
    failure: failure.map(encodeOperation),
  });
}

export function encodeWatch({ key, end, startRevision }: WatchRequest): string {
  const range = { key: toBase64(key), ...(end === undefined ? {} : { range_end: toBase64(end) }) };
  return JSON.stringify({ create_request: { ...range, start_revision: startRevision, progress_notify: true } });
}

function encodeComparison(comparison: Comparison): object {
  const { kind, revision } = comparison;
  const key = toBase64(comparison.key);
  if (kind === "unchanged") return { key, target: "MOD", result: "EQUAL", mod_revision: revision };
  const next = String(BigInt(revision) + 1n);
  return { key, range_end: toBase64(comparison.end), target: "MOD", result: "LESS", mod_revision: next };
}

function encodeOperation(operation: Operation): object {
  switch (operation.kind) {
    case "put":
      return { request_put: { key: toBase64(operation.key), value: toBase64(operation.value) } };
    case "delete":
      return { request_delete_range: { key: toBase64(operation.key) } };
    case "range": {
      const { key, end, limit, revision, keysOnly } = operation;
      return {
        request_range: {
          key: toBase64(key),
          ...(end === undefined ? {} : { range_end: toBase64(end) }),
          ...(limit === undefined ? {} : { limit: String(limit) }),
          ...(revision === undefined ? {} : { revision }),
          ...(keysOnly ? { keys_only: true } : {}),
        },
      };
    }
  }
}

interface WireHeader {
  readonly revision?: string;
}

interface WireEntry {
  readonly key: string;
  readonly value?: string;
  readonly create_revision?: string;
  readonly mod_revision?: string;
}

interface WireTransactionAnswer {
  readonly header?: WireHeader;
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: { readonly kvs?: readonly WireEntry[] } }[];
}

interface WireWatchAnswer {
  readonly header?: WireHeader;
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly compact_revision?: string;
  readonly cancel_reason?: string;
  readonly events?: readonly { readonly type?: string; readonly kv: WireEntry }[];
}

export function decodeTransactionResponse(text: string): TransactionResponse {
  const answer = JSON.parse(text) as WireTransactionAnswer;
  return {
    revision: answer.header?.revision ?? "0",
    succeeded: answer.succeeded ?? false,
    ranges: rangesOf(answer),
  };
}

function rangesOf({ responses = [] }: WireTransactionAnswer): readonly (readonly StoredEntry[])[] {
  return responses.flatMap(({ response_range }) =>
    response_range ? [(response_range.kvs ?? []).map(decodeEntry)] : [],
  );
}

/** A line of the watch's stream: an answer, or the complaint that ends it. */
export function decodeWatchLine(line: string): WatchResponse | { readonly code: number; readonly message: string } {
  const { result, error } = JSON.parse(line) as {
    readonly result?: WireWatchAnswer;
    readonly error?: { readonly grpc_code?: number; readonly code?: number; readonly message?: string };
  };
  if (!result) return { code: error?.grpc_code ?? error?.code ?? 2, message: error?.message ?? "the watch ended" };
  return {
    revision: result.header?.revision ?? "0",
    created: result.created ?? false,
    canceled: result.canceled ?? false,
    compactRevision: result.compact_revision ?? "0",
    cancelReason: result.cancel_reason ?? "",
    changes: (result.events ?? []).map(decodeChange),
  };
}

function decodeChange({ type, kv }: { readonly type?: string; readonly kv: WireEntry }): WatchedChange {
  const entry = decodeEntry(kv);
  return type === "DELETE" ? { kind: "delete", key: entry.key, revision: entry.revision } : { kind: "put", entry };
}

function decodeEntry({ key, value = "", create_revision = "0", mod_revision = "0" }: WireEntry): StoredEntry {
  return { key: fromBase64(key), value: fromBase64(value), revision: mod_revision, createRevision: create_revision };
}

export function decodeToken(text: string): string {
  return (JSON.parse(text) as { readonly token?: string }).token ?? "";
}

/** The gateway's complaint; other servers' text is quoted as it is. */
export function decodeError(status: number, text: string): { readonly code: number; readonly message: string } {
  try {
    const { code, message, error } = JSON.parse(text) as { code?: number; message?: string; error?: string };
    return { code: code ?? status, message: message ?? error ?? text };
  } catch {
    return { code: status, message: text.trim().slice(0, 200) };
  }
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString();
}
