/** What a request is about, in the terms of a role: verb, API group, resource. Pure. */
import { quoted } from "../quote.ts";

export interface RequestTarget {
  readonly verb: string;
  readonly group: string;
  /** With its subresource: `pods/status`. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

const VERBS = { GET: "get", POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

export function targetOf({
  method,
  path,
  query,
}: {
  readonly method: keyof typeof VERBS;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}): RequestTarget {
  const [root, ...rest] = path.split("/").filter((step) => step !== "");
  const [group = "", below] = root === "apis" ? [rest[0], rest.slice(2)] : ["", rest.slice(1)];
  if ((root !== "api" && root !== "apis") || below.length === 0) {
    return { verb: VERBS[method], group: "", resource: path, namespace: undefined, name: undefined };
  }
  const isNamespaced = below[0] === "namespaces" && below.length > 2;
  const [resource = "", name, subresource] = isNamespaced ? below.slice(2) : below;
  return {
    verb: verbOf(method, name, query),
    group,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace: isNamespaced ? decode(below[1]) : undefined,
    name: decode(name),
  };
}

function verbOf(
  method: keyof typeof VERBS,
  name: string | undefined,
  query?: Readonly<Record<string, string>>,
): string {
  const isWatch = query?.["watch"] === "1" || query?.["watch"] === "true";
  if (method === "GET" && isWatch) return "watch";
  if (method === "GET" && name === undefined) return "list";
  return method === "DELETE" && name === undefined ? "deletecollection" : VERBS[method];
}

function decode(step: string | undefined): string | undefined {
  return step === undefined ? undefined : decodeURIComponent(step);
}

/** `get pods "default/web-0"`. */
export function describeRequest({ verb, resource, namespace, name }: RequestTarget): string {
  const full = name === undefined ? undefined : quoted(namespace === undefined ? name : `${namespace}/${name}`);
  if (full !== undefined) return `${verb} ${resource} ${full}`;
  return namespace === undefined ? `${verb} ${resource}` : `${verb} ${resource} in namespace ${quoted(namespace)}`;
}
