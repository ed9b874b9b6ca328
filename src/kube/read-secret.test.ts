import { describe, expect, test } from "bun:test";
import type { KubeRequest } from "./api.ts";
import { readSecret } from "./read-secret.ts";

const VALUE = Buffer.from("geheim ü").toString("base64");

function respond(status: number, body: unknown) {
  const requests: KubeRequest[] = [];
  const client = {
    request: async (request: KubeRequest) => {
      requests.push(request);
      return { status, text: JSON.stringify(body) };
    },
  };
  const read = (key: string) => readSecret(client, { namespace: "kube-system", name: "bgp-passwords", key });
  return { requests, read };
}

describe("readSecret()", () => {
  test("reads a value", async () => {
    const { requests, read } = respond(200, { data: { tor: VALUE } });

    expect(await read("tor")).toBe("geheim ü");
    expect(requests).toEqual([{ method: "GET", path: "/api/v1/namespaces/kube-system/secrets/bgp-passwords" }]);
  });

  test.each([
    ["without the key", 200, { data: { other: VALUE } }, "resource-missing"],
    ["without data", 200, {}, "resource-missing"],
    ["that does not exist", 404, { message: 'secrets "bgp-passwords" not found' }, "resource-missing"],
    ["that the role may not read", 403, { message: "forbidden" }, "api-unavailable"],
  ] as const)("says what is missing of a Secret %s, without a value", async (_, status, body, kind) => {
    const failure = await respond(status, body)
      .read("tor")
      .catch((error: unknown) => error);

    expect(failure).toMatchObject({ kind });
    expect(String(failure)).not.toContain(VALUE);
  });
});
