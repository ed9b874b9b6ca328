/** Parses bytes from outside as a JSON object; throws a `decode-failure` if they are not one. */
import { PluginError } from "../errors.ts";
import { NestingError, parseJson } from "../parse-json.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `subject` names the text in messages: "the network config". */
export function parseJsonObject(bytes: Uint8Array, subject: string): JsonObject {
  if (bytes.length === 0) throw new PluginError("decode-failure", `Cannot read ${subject}: it is empty`);

  const value = parseBytes(bytes, subject);
  if (isJsonObject(value)) return value;
  throw new PluginError("decode-failure", `Cannot read ${subject}: it is ${kindOf(value)}, not a JSON object`);
}

let decoder: TextDecoder | undefined;

function parseBytes(bytes: Uint8Array, subject: string): unknown {
  try {
    decoder ??= new TextDecoder("utf-8", { fatal: true });
    return parseJson(decoder.decode(bytes));
  } catch (cause) {
    if (cause instanceof NestingError) {
      throw new PluginError("decode-failure", `Cannot read ${subject}: ${cause.message}`, { cause });
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("decode-failure", `Cannot read ${subject}: it is not valid JSON`, { details: reason, cause });
  }
}

/** The type of a value, for messages. Never the value itself, which may contain a secret. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
