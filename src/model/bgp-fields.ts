/** Schemas of values in several kinds of BGP. */
import * as v from "valibot";
import { type Address, parseAddress } from "../ip/address.ts";
import type { Problem } from "./problem.ts";

const PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
/** Also for the CRDs, which parse the address themselves. */
export const IPV4_WITH_PORT = `^([0-9.]{7,15}):${PORT}$`;
export const IPV6_WITH_PORT = `^\\[([0-9a-fA-F:.]{2,45})\\]:${PORT}$`;

export interface PeerAddress {
  readonly address: Address;
  readonly port: number | undefined;
}

/** `192.0.2.1`, `192.0.2.1:1790`, `fd00::1`, `[fd00::1]:1790`; `undefined` if it is none of them. */
export function parsePeerAddress(text: string): PeerAddress | undefined {
  const match = new RegExp(IPV4_WITH_PORT).exec(text) ?? new RegExp(IPV6_WITH_PORT).exec(text);
  const address = parseAddress(match?.[1] ?? text);
  return address && { address, port: match ? Number(match[2]) : undefined };
}

export const NOT_A_PEER_ADDRESS =
  'is not an address of a peer; use for example "192.0.2.1", "192.0.2.1:1790" or "[fd00::1]:1790"';
export const peerAddressField = v.pipe(
  v.string(),
  v.check((text) => parsePeerAddress(text) !== undefined, NOT_A_PEER_ADDRESS),
);

/** BGP has 12 bits for it. */
const LONGEST_RESTART = 4095;
export const RESTART_TIME_PATTERN = "^([0-9]{1,2}h)?([0-9]{1,4}m)?([0-9]{1,4}s)?$";
export const NOT_A_RESTART_TIME = `is not a restart time; use "1s" to "${LONGEST_RESTART}s", for example "120s" or "2m"`;
export const restartTimeField = v.pipe(
  v.string(),
  v.check((text) => {
    const seconds = restartSeconds(text);
    return seconds >= 1 && seconds <= LONGEST_RESTART;
  }, NOT_A_RESTART_TIME),
);

/** Also of text that `kubectl get` or `calicoctl get` printed: `2m0s`. 0 if it is not a duration. */
export function restartSeconds(text: string): number {
  const [, hours = "0", minutes = "0", seconds = "0"] = new RegExp(RESTART_TIME_PATTERN).exec(text) ?? [];
  return Number.parseInt(hours, 10) * 3600 + Number.parseInt(minutes, 10) * 60 + Number.parseInt(seconds, 10);
}

const NOT_AN_INTERFACE =
  'is not the name of an interface; use 1 to 15 letters, digits, "_", "." or "-", and "*" for any text';
/** The name of an interface; `*` stands for any text. */
export const interfacePatternField = v.pipe(
  v.string(),
  v.regex(/^[a-zA-Z0-9_.*-]{1,15}$/, NOT_AN_INTERFACE),
  v.maxLength(64, NOT_AN_INTERFACE),
);

const NOT_A_PORT = "is not a port; use a whole number from 1 to 65535";
export const bgpPortField = v.pipe(
  v.number(),
  v.integer(NOT_A_PORT),
  v.minValue(1, NOT_A_PORT),
  v.maxValue(65_535, NOT_A_PORT),
);

/** Where the password of sessions is: a key of a Secret in the agent's namespace, or a file on each node. */
export const passwordField = v.object({
  secretKeyRef: v.exactOptional(v.object({ name: v.string(), key: v.string() })),
  file: v.exactOptional(v.pipe(v.string(), v.regex(/^\/.{1,1000}$/, "is not an absolute path; begin it with /"))),
});
export type PasswordReference = Readonly<v.InferOutput<typeof passwordField>>;

/** The CRDs have rules with the same messages. */
export const PASSWORD_MESSAGES = {
  none: "is missing, and file too; add one of them",
  both: "cannot be combined with file; remove one of them",
} as const;

/** The problem is one of `secretKeyRef`: whatever follows the name of a password is redacted. */
export function checkPassword(password: PasswordReference | undefined, path: string): readonly Problem[] {
  if (password === undefined || (password.secretKeyRef === undefined) !== (password.file === undefined)) return [];
  const message = password.file === undefined ? PASSWORD_MESSAGES.none : PASSWORD_MESSAGES.both;
  return [{ path: `${path}.secretKeyRef`, value: undefined, message }];
}

/** Fields of the same kind in other products that this one refuses by name. */
export type RefusedFields = Readonly<Record<string, string>>;

export function checkRefused(spec: object, refused: RefusedFields): readonly Problem[] {
  return Object.entries(refused).flatMap(([field, message]) =>
    Object.hasOwn(spec, field)
      ? [{ path: `spec.${field}`, value: (spec as Readonly<Record<string, unknown>>)[field], message }]
      : [],
  );
}
