import { describe, expect, test } from "bun:test";
import { seed } from "../../test/support/ipam.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { API_VERSION } from "../identity.ts";
import { resourceKey } from "../model/keys.ts";
import { SERVICE_ENDPOINTS_PREFIX } from "../model/service-endpoints.ts";
import { readPolicy } from "./read-resources.ts";

describe("readPolicy()", () => {
  test("reads the endpoints of services only if a rule matches a service", async () => {
    const store = openMemory();
    const read: string[] = [];
    const api = {
      ...storeAround(store, {
        async read(wanted) {
          read.push(...wanted.flatMap((each) => (each.kind === "prefix" ? [each.prefix] : [])));
          return store.read(wanted);
        },
      }),
      isOrchestratorApi: true,
    };

    expect((await readPolicy(api)).resources.serviceEndpoints).toEqual([]);
    expect(read).not.toContain(SERVICE_ENDPOINTS_PREFIX);

    const egress = [{ action: "Allow", destination: { services: { name: "web", namespace: "shop" } } }];
    const metadata = { name: "web", namespace: "shop" };
    const value = JSON.stringify({ apiVersion: API_VERSION, kind: "NetworkPolicy", metadata, spec: { egress } });
    await seed(store, { kind: "put", key: resourceKey("networkpolicies", metadata), value });
    await readPolicy(api);
    expect(read).toContain(SERVICE_ENDPOINTS_PREFIX);
  });
});
