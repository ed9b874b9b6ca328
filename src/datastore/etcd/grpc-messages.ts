/** etcd's messages in protobuf; the numbers are those of etcd's `rpc.proto`, `kv.proto` and `auth`. */
import { delimited, Fields, message, varint } from "../../grpc/protobuf.ts";
import type {
  Comparison,
  Operation,
  StoredEntry,
  Transaction,
  TransactionResponse,
  User,
  WatchedChange,
  WatchRequest,
  WatchResponse,
} from "./transport.ts";

const RESULT_LESS = 2n;
const TARGET_MODIFIED = 2n;
const EVENT_DELETE = 1n;

export function encodeTransaction({ comparisons, success, failure }: Transaction): Uint8Array {
  return message(
    ...comparisons.map((comparison) => delimited(1, encodeComparison(comparison))),
    ...success.map((operation) => delimited(2, encodeOperation(operation))),
    ...failure.map((operation) => delimited(3, encodeOperation(operation))),
  );
}

function encodeComparison(comparison: Comparison): Uint8Array {
  const subject = [varint(2, TARGET_MODIFIED), delimited(3, comparison.key)];
  const revision = BigInt(comparison.revision);
  if (comparison.kind === "unchanged") return message(...subject, varint(6, revision));
  return message(varint(1, RESULT_LESS), ...subject, varint(6, revision + 1n), delimited(64, comparison.end));
}

function encodeOperation(operation: Operation): Uint8Array {
  switch (operation.kind) {
    case "put":
      return delimited(2, message(delimited(1, operation.key), delimited(2, operation.value)));
    case "delete":
      return delimited(3, message(delimited(1, operation.key)));
    case "range": {
      const { key, end, limit, revision, keysOnly } = operation;
      return delimited(
        1,
        message(
          delimited(1, key),
          ...(end === undefined ? [] : [delimited(2, end)]),
          ...(limit === undefined ? [] : [varint(3, BigInt(limit))]),
          ...(revision === undefined ? [] : [varint(4, BigInt(revision))]),
          ...(keysOnly ? [varint(8, 1n)] : []),
        ),
      );
    }
  }
}

export function decodeTransactionResponse(bytes: Uint8Array): TransactionResponse {
  const answer = new Fields(bytes);
  return { revision: headerRevision(answer), succeeded: answer.flag(2), ranges: rangesOf(answer) };
}

function rangesOf(answer: Fields): readonly (readonly StoredEntry[])[] {
  return answer.all(3).flatMap((response) => {
    const range = response.one(1);
    return range ? [range.all(2).map(decodeEntry)] : [];
  });
}

export function encodeWatch({ key, end, startRevision }: WatchRequest): Uint8Array {
  const create = message(
    delimited(1, key),
    ...(end === undefined ? [] : [delimited(2, end)]),
    varint(3, BigInt(startRevision)),
    varint(4, 1n),
  );
  return delimited(1, create);
}

export function decodeWatchResponse(bytes: Uint8Array): WatchResponse {
  const answer = new Fields(bytes);
  return {
    revision: headerRevision(answer),
    created: answer.flag(3),
    canceled: answer.flag(4),
    compactRevision: answer.numberText(5),
    cancelReason: answer.text(6),
    changes: answer.all(11).flatMap(decodeChange),
  };
}

function decodeChange(event: Fields): readonly WatchedChange[] {
  const stored = event.one(2);
  if (!stored) return [];
  const entry = decodeEntry(stored);
  if (event.number(1) !== EVENT_DELETE) return [{ kind: "put", entry }];
  return [{ kind: "delete", key: entry.key, revision: entry.revision }];
}

function decodeEntry(entry: Fields): StoredEntry {
  return {
    key: entry.text(1),
    value: entry.text(5),
    revision: entry.numberText(3),
    createRevision: entry.numberText(2),
  };
}

function headerRevision(answer: Fields): string {
  return answer.one(1)?.numberText(3) ?? "0";
}

export function encodeUser({ name, password }: User): Uint8Array {
  return message(delimited(1, name), delimited(2, password));
}

export function decodeToken(bytes: Uint8Array): string {
  return new Fields(bytes).text(2);
}
