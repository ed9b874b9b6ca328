/** Bytes from outside become a JSON object here, or a `decode-failure`. */
import { PluginError } from "../errors.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `subject` is how a message calls the text: "the network config". */
export function parseJsonObject(bytes: Uint8Array, subject: string): JsonObject {
  if (bytes.length === 0) throw new PluginError("decode-failure", `Cannot read ${subject}: it is empty`);

  const value = parseJson(bytes, subject);
  if (isJsonObject(value)) return value;
  throw new PluginError("decode-failure", `Cannot read ${subject}: it is ${kindOf(value)}, not a JSON object`);
}

let decoder: TextDecoder | undefined;

function parseJson(bytes: Uint8Array, subject: string): unknown {
  try {
    decoder ??= new TextDecoder("utf-8", { fatal: true });
    return JSON.parse(decoder.decode(bytes));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("decode-failure", `Cannot read ${subject}: it is not valid JSON`, { details: reason, cause });
  }
}

/** What a message says of a value that is not of the right type: never the value, which may hold a secret. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
