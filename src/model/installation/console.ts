/** `spec.console`: whether the web console runs, under which further names users reach it, and which Prometheus it asks. */
import * as v from "valibot";
import { parseAddress } from "../../ip/address.ts";
import { portField, switchField } from "./fields.ts";

/** The rule of the CRD has the same message. */
export const NOT_A_HOST =
  'is not a host name or address; use lower-case letters, digits, "-" and ".", or an IP address, without scheme, port and "*"';

/** The names of a certificate, and the header of a request, are compared with them as they are. */
const HOST = /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*|[0-9a-f:.]*:[0-9a-f:.]*)$/;

/** What the port of an Installation is that names none: that of Prometheus. */
export const ALERTS_PORT = 9090;

/** Names of namespaces and Services: one step of a path, without "/", ":" and ".". */
export const OBJECT_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LONGEST_OBJECT_NAME = 63;
const NOT_A_NAMESPACE =
  'is not the name of a namespace; use lower-case letters, digits and "-", for example "monitoring"';
const NOT_A_SERVICE =
  'is not the name of a Service; use lower-case letters, digits and "-", for example "prometheus", and set namespace and port beside it';

function objectName(message: string) {
  return v.exactOptional(v.pipe(v.string(), v.regex(OBJECT_NAME, message), v.maxLength(LONGEST_OBJECT_NAME, message)));
}

export const consoleSchema = v.object({
  mode: v.exactOptional(switchField),
  alerts: v.exactOptional(
    v.object({
      namespace: objectName(NOT_A_NAMESPACE),
      service: objectName(NOT_A_SERVICE),
      port: v.exactOptional(portField),
    }),
  ),
  hosts: v.exactOptional(v.array(v.pipe(v.string(), v.regex(HOST, NOT_A_HOST), v.maxLength(253, NOT_A_HOST)))),
});

/** What the schema leaves out, since `default` and `overlay` may each have a part of it. */
export const ALERTS_MESSAGES = {
  namespace: 'is missing; set the namespace of the Service of Prometheus, for example "monitoring"',
  service: 'is missing; set the name of the Service of Prometheus, for example "prometheus"',
} as const;

export type DeclaredConsole = Readonly<v.InferOutput<typeof consoleSchema>>;

/** Text without a letter, or with a colon, is an address or nothing. */
export function isHost(text: string): boolean {
  if (!HOST.test(text) || text.length > 253) return false;
  return (/[a-z]/.test(text) && !text.includes(":")) || parseAddress(text) !== undefined;
}
