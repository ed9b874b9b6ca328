/** What the API server was asked, from its audit log: which user sent which requests. */
import { closeSync, openSync, readSync, statSync } from "node:fs";

export interface AuditedRequest {
  readonly verb: string;
  /** With the subresource: `pods/status`; empty for paths that are not resources. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  readonly userAgent: string;
  readonly uri: string;
  /** The HTTP status. */
  readonly status: number;
}

export interface Audit {
  /** Every request since `startAudit`, in the order of their responses; a watch is there as soon as it has begun. */
  requests(user?: string): readonly AuditedRequest[];
  /** How many of each verb and resource, for example `{ "get pods": 1, "patch pods/status": 1 }`. */
  counts(user?: string): Readonly<Record<string, number>>;
}

/** The server writes an event before it responds, so a finished request is in the log. */
export const AUDIT_POLICY = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata" }],
});

export function startAudit(logFile: string): Audit {
  const start = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  const requests = (user?: string) =>
    requestsIn(readFrom(logFile, start)).filter((request) => user === undefined || request.user === user);
  return {
    requests,
    counts(user) {
      const counts: Record<string, number> = {};
      for (const { verb, resource, uri } of requests(user)) {
        const what = `${verb} ${resource || uri}`;
        counts[what] = (counts[what] ?? 0) + 1;
      }
      return counts;
    },
  };
}

interface Event {
  readonly auditID: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

/** A long request has two events: when its response begins and when it ends. */
function requestsIn(log: string): readonly AuditedRequest[] {
  const lines = log.split("\n").filter((line) => line.endsWith("}"));
  const events = lines.map((line) => JSON.parse(line) as Event);
  return [...new Map(events.map((event) => [event.auditID, event])).values()].map(requestOf);
}

function requestOf({ verb, user, userAgent, requestURI, objectRef, responseStatus }: Event): AuditedRequest {
  const { resource = "", subresource, namespace = "", name = "" } = objectRef ?? {};
  return {
    verb,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    user: user.username,
    userAgent: userAgent ?? "",
    uri: requestURI,
    status: responseStatus?.code ?? 0,
  };
}

function readFrom(path: string, start: number): string {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const rest = Buffer.alloc(Math.max(0, size - start));
  if (rest.length === 0) return "";
  const file = openSync(path, "r");
  try {
    return rest.toString("utf8", 0, readSync(file, rest, 0, rest.length, start));
  } finally {
    closeSync(file);
  }
}
