/** What a request asks for, from as much of it as has arrived. Pure. */
export type RequestHead =
  | { readonly kind: "incomplete" }
  | { readonly kind: "page"; readonly path: string; readonly isHead: boolean }
  | Refusal;

export interface Refusal {
  readonly kind: "refused";
  readonly status: 400 | 405 | 431;
  readonly reason: string;
}

const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/;
/** Of a client that speaks to a proxy: an origin before the path. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

export function parseRequest(received: string, mostBytes: number): RequestHead {
  const end = /\r?\n\r?\n/.exec(received)?.index;
  if ((end ?? received.length) > mostBytes) return refused(431, `the request has more than ${mostBytes} bytes`);
  if (end === undefined) return { kind: "incomplete" };
  const [line = ""] = received.split(/\r?\n/, 1);
  const [, method, target] = REQUEST_LINE.exec(line) ?? [];
  if (method === undefined || target === undefined) return refused(400, "this is not a request of HTTP 1.0 or 1.1");
  if (method !== "GET" && method !== "HEAD") return refused(405, "the pages can only be read");
  const path = target.replace(ORIGIN, "").split(/[?#]/, 1)[0] ?? "";
  return { kind: "page", path: path === "" ? "/" : path, isHead: method === "HEAD" };
}

function refused(status: Refusal["status"], reason: string): Refusal {
  return { kind: "refused", status, reason };
}
