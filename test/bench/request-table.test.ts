import { describe, expect, test } from "bun:test";
import { requestTable } from "../../bench/support/request-table.ts";
import type { AuditedRequest } from "../support/kube-audit.ts";

function request(verb: string, resource: string): AuditedRequest {
  return { verb, resource, namespace: "", name: "", user: "u", userAgent: "", uri: "/", status: 200 };
}

describe("requestTable()", () => {
  test("shows requests, reads and writes per call, and which they are", () => {
    const requests = [request("get", "pods"), request("get", "pods"), request("patch", "pods/status")];
    const table = requestTable([{ name: "a", command: "ADD", calls: 2, requests }]);

    expect(table).toContain("| a | ADD | 1.5 | 1 | 0.5 | 1 get pods, 0.5 patch pods/status |");
  });
});
