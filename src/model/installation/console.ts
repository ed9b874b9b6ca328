/** `spec.console`: whether the web console runs, and under which further names users reach it. */
import * as v from "valibot";
import { parseAddress } from "../../ip/address.ts";
import { switchField } from "./fields.ts";

/** The rule of the CRD has the same message. */
export const NOT_A_HOST =
  'is not a host name or address; use lower-case letters, digits, "-" and ".", or an IP address, without scheme, port and "*"';

/** The names of a certificate, and the header of a request, are compared with them as they are. */
const HOST = /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*|[0-9a-f:.]*:[0-9a-f:.]*)$/;

export const consoleSchema = v.object({
  mode: v.exactOptional(switchField),
  hosts: v.exactOptional(v.array(v.pipe(v.string(), v.regex(HOST, NOT_A_HOST), v.maxLength(253, NOT_A_HOST)))),
});

export type DeclaredConsole = Readonly<v.InferOutput<typeof consoleSchema>>;

/** Text without a letter, or with a colon, is an address or nothing. */
export function isHost(text: string): boolean {
  if (!HOST.test(text) || text.length > 253) return false;
  return (/[a-z]/.test(text) && !text.includes(":")) || parseAddress(text) !== undefined;
}
