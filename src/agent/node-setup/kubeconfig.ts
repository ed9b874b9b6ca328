/** The kubeconfig that the plugin uses: complete in itself, so that it can be replaced as a whole. Pure. */
import { identity } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { TokenAccount } from "./account-token.ts";

export interface PluginAccess {
  readonly server: string;
  /** PEM certificates. */
  readonly authority: string;
  readonly token: string;
}

export function pluginKubeconfig({ server, authority, token }: PluginAccess): string {
  const name = identity.product;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": toBase64(authority) } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  // JSON is YAML.
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** What is in a kubeconfig that `pluginKubeconfig` wrote; `undefined` for any other text. */
export function readPluginKubeconfig(text: string): PluginAccess | undefined {
  const config = parsed(text);
  const cluster = firstOf(config, "clusters", "cluster");
  const token = firstOf(config, "users", "user")?.["token"];
  const [server, authority] = [cluster?.["server"], cluster?.["certificate-authority-data"]];
  if (typeof server !== "string" || typeof authority !== "string" || typeof token !== "string") return undefined;
  return { server, authority: Buffer.from(authority, "base64").toString(), token };
}

/** Milliseconds since 1970, from the claims of the token; `undefined` if it has none that can be read. */
export function tokenExpiry(token: string): number | undefined {
  const seconds = claimsOf(token)["exp"];
  return typeof seconds === "number" ? seconds * 1_000 : undefined;
}

/** The UID of the Node that the token is bound to; `undefined` if it is not. */
export function boundNodeUid(token: string): string | undefined {
  const { node } = fieldsOf(claimsOf(token)["kubernetes.io"]);
  const { uid } = fieldsOf(node);
  return typeof uid === "string" ? uid : undefined;
}

/** The account and the Node of a token; `undefined` if it is not bound to a Node. */
export function boundAccount(token: string): TokenAccount | undefined {
  const { namespace, serviceaccount, node } = fieldsOf(claimsOf(token)["kubernetes.io"]);
  const [account, bound] = [fieldsOf(serviceaccount)["name"], fieldsOf(node)["name"]];
  if (typeof namespace !== "string" || typeof account !== "string" || typeof bound !== "string") return undefined;
  return { namespace, name: account, node: bound };
}

function claimsOf(token: string): Readonly<Record<string, unknown>> {
  return fieldsOf(parsed(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()));
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

function firstOf(config: unknown, list: string, member: string): Readonly<Record<string, unknown>> | undefined {
  const members: unknown = isObject(config) ? config[list] : undefined;
  const first: unknown = Array.isArray(members) ? members[0] : undefined;
  const inner = isObject(first) ? first[member] : undefined;
  return isObject(inner) ? inner : undefined;
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
