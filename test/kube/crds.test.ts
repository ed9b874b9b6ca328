/** The CRDs on a real API server: what it accepts, refuses, fills in and prints. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { API_VERSION, identity } from "../../src/identity.ts";
import { parsePrefix } from "../../src/ip/prefix.ts";
import { ipAddressList } from "../../src/model/ip-address-list.ts";
import { ipPool } from "../../src/model/ip-pool.ts";
import { writeBlock } from "../../src/model/ipam-block.ts";
import { CUSTOM_RESOURCES } from "../../src/release/crds/all-kinds.ts";
import { BAD_BGP, GOOD_BGP } from "../support/bad-bgp.ts";
import { BAD_POLICIES, GOOD_POLICIES } from "../support/bad-policies.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { BAD_POOLS } from "./bad-pools.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const ROOT = join(import.meta.dir, "../..");

let server: ApiServer;
beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await installCrds(server);
}, 120_000);
afterAll(() => server?.stop());

function resource(kind: string, name: string, spec: unknown): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name }, spec });
}

/** What kubectl says about a resource that the API server refuses. */
async function refusal(text: string): Promise<string> {
  return server.kubectl(["apply", "--filename=-"], text).then(
    () => "accepted",
    (error: Error) => error.message,
  );
}

interface Definition {
  readonly metadata: { readonly name: string };
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

describe("the CRDs", () => {
  testServer("are established without complaint about names or schema", async () => {
    const { items } = await server.get<{ items: readonly Definition[] }>("customresourcedefinitions");
    const names = items.map(({ metadata }) => metadata.name);
    const conditions = items.flatMap(({ status }) => status.conditions.map(({ type, status }) => `${type}=${status}`));

    expect(names.sort()).toEqual(CUSTOM_RESOURCES.map(({ row }) => `${row.plural}.${identity.apiGroup}`).sort());
    expect(new Set(conditions)).toEqual(new Set(["NamesAccepted=True", "Established=True"]));
  });

  testServer("are applied again without a change, also server-side", async () => {
    const directory = `--filename=${join(ROOT, "deploy/crds")}`;
    const again = await server.kubectl(["apply", directory]);
    const onServer = await server.kubectl(["apply", "--server-side", "--force-conflicts", directory]);

    expect(
      again
        .trim()
        .split("\n")
        .every((line) => line.endsWith(" unchanged")),
    ).toBe(true);
    expect(
      onServer
        .trim()
        .split("\n")
        .every((line) => line.endsWith(" serverside-applied")),
    ).toBe(true);
  });

  testServer("accept every example of the documentation", async () => {
    const examples = documentedResources();

    expect(examples.length).toBeGreaterThan(3);
    const namespaces = examples.flatMap((text) => /namespace"?: ?"?([a-z0-9-]+)/.exec(text)?.[1] ?? []);
    for (const name of new Set(namespaces)) await server.createNamespace(name);
    for (const text of examples) await server.kubectl(["apply", "--dry-run=server", "--filename=-"], text);
  });
});

describe("an IP pool", () => {
  testServer(
    "that is not valid is refused with the message of vendorctl",
    async () => {
      for (const [what, spec] of BAD_POOLS) {
        const decoded = ipPool.decode({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "bad" }, spec });
        const text = await refusal(resource("IPPool", "bad", spec));

        const problems = decoded.ok ? [] : decoded.problems;
        const missing = problems.filter(
          ({ path, message }) => !text.includes(`${path}: Invalid value: `) || !text.includes(message),
        );
        expect({ what, problems: problems.length > 0, missing, text }).toEqual({
          what,
          problems: true,
          missing: [],
          text,
        });
      }
    },
    120_000,
  );

  testServer("with a bad selector, mode, use or field is refused", async () => {
    const cases = [
      [{ nodeSelector: "zone = a" }, `spec.nodeSelector: Invalid value: "zone = a": is not a valid selector; use`],
      [{ nodeSelector: "(has(zone)" }, "is not a valid selector"],
      [{ nodeSelector: "has(zone) &&" }, "is not a valid selector"],
      [
        { vxlanMode: "Sometimes" },
        `spec.vxlanMode: Unsupported value: "Sometimes": supported values: "Never", "Always"`,
      ],
      [{ allowedUses: ["Everything"] }, `spec.allowedUses[0]: Unsupported value: "Everything"`],
      [{ blockSize: "26" }, "spec.blockSize: Invalid value"],
      [{ cooldownSeconds: 86_401 }, "86401: is out of range; use 0 to 86400 seconds"],
      [{ blocksize: 26 }, `unknown field "spec.blocksize"`],
    ] as const;
    for (const [more, wanted] of cases) {
      expect(await refusal(resource("IPPool", "bad", { cidr: "10.99.0.0/16", ...more }))).toContain(wanted);
    }
    expect(await refusal(resource("IPPool", "bad", {}))).toContain("spec.cidr: Required value");
  });

  testServer("gets its defaults", async () => {
    await server.apply(resource("IPPool", "defaults", { cidr: "10.1.0.0/16", natOutgoing: null }));

    const { spec } = await server.get<{ spec: unknown }>("ippool", "defaults");
    expect(spec).toEqual({
      cidr: "10.1.0.0/16",
      ipipMode: "Never",
      vxlanMode: "Never",
      natOutgoing: false,
      nodeSelector: "all()",
      disabled: false,
      disableBGPExport: false,
      allowedUses: ["Workload", "Tunnel"],
    });
  });

  testServer("keeps its CIDR and block size", async () => {
    await server.apply(resource("IPPool", "fixed", { cidr: "10.2.0.0/16", blockSize: 27 }));
    await server.apply(resource("IPPool", "usual", { cidr: "fd00:2::/64" }));

    expect(await refusal(resource("IPPool", "fixed", { cidr: "10.2.0.0/17", blockSize: 27 }))).toContain(
      'spec.cidr: Invalid value: "10.2.0.0/17": cannot be changed from "10.2.0.0/16"; create another pool and disable this one',
    );
    expect(await refusal(resource("IPPool", "fixed", { cidr: "10.2.0.0/16", blockSize: 26 }))).toContain(
      "spec.blockSize: Invalid value: 26: cannot be changed from 27; create another pool and disable this one",
    );
    expect(await refusal(resource("IPPool", "fixed", { cidr: "10.2.0.0/16" }))).toContain("cannot be changed from 27");
    expect(await refusal(resource("IPPool", "usual", { cidr: "fd00:2::/64", blockSize: 121 }))).toContain(
      "spec.blockSize: Invalid value: 121: cannot be changed from 122",
    );
    // The default, and another spelling of the same CIDR, are not changes.
    await server.apply(resource("IPPool", "usual", { cidr: "fd00:2:0::/64", blockSize: 122, disabled: true }));
  });

  testServer("of a tool that applies on the server has one owner for each field", async () => {
    const apply = (manager: string, spec: object) =>
      server.kubectl(
        ["apply", "--server-side", `--field-manager=${manager}`, "--filename=-"],
        resource("IPPool", "shared", spec),
      );
    await apply("first", { cidr: "10.3.0.0/16", natOutgoing: true });
    await apply("second", { cidr: "10.3.0.0/16", disabled: true });

    await expect(apply("second", { cidr: "10.3.0.0/16", natOutgoing: false })).rejects.toThrow('conflict with "first"');
    expect((await server.get<{ spec: object }>("ippool", "shared")).spec).toMatchObject({
      natOutgoing: true,
      disabled: true,
    });
  });

  testServer("is printed with what operators look for", async () => {
    await server.apply(resource("IPPool", "printed", { cidr: "10.4.0.0/16", blockSize: 26 }));
    const tableOf = async (...args: string[]) =>
      (await server.kubectl(["get", ...args]))
        .trim()
        .split("\n")
        .map((line) => line.split(/ {2,}/));

    const [head, row] = await tableOf("ippools", "printed");
    expect(head).toEqual(["NAME", "CIDR", "DISABLED", "SELECTOR", "AGE"]);
    expect(row?.slice(0, -1)).toEqual(["printed", "10.4.0.0/16", "false", "all()"]);
    const [wideHead, wideRow] = await tableOf("pool", "printed", "--output=wide");
    expect(wideHead).toEqual([
      "NAME",
      "CIDR",
      "BLOCK SIZE",
      "NAT",
      "IPIP",
      "VXLAN",
      "USES",
      "DISABLED",
      "SELECTOR",
      "NAMESPACES",
      "AGE",
    ]);
    expect(wideRow?.slice(0, 7)).toEqual([
      "printed",
      "10.4.0.0/16",
      "26",
      "false",
      "Never",
      "Never",
      '["Workload","Tunnel"]',
    ]);
    expect((await tableOf(identity.product)).flat()).toContain(`ippool.${identity.apiGroup}/printed`);
  });

  testServer("is explained by kubectl", async () => {
    expect(await server.kubectl(["explain", "ippool.spec.cidr"])).toContain(
      "Range of addresses; cannot change, and must not overlap another pool",
    );
    const mode = (await server.kubectl(["explain", "ippool.spec.ipipMode"])).replace(/\s+/g, " ");
    expect(mode).toContain("ENUM: Never Always CrossSubnet");
  });
});

describe("a list of addresses", () => {
  const list = (spec: object) => resource("IPAddressList", "bad", spec);

  testServer(
    "that is not valid is refused with the message of vendorctl",
    async () => {
      const most = Array.from({ length: 1025 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
      await server.apply(resource("IPAddressList", "large", { addresses: most.slice(1) }));
      for (const [spec, onServer] of [
        [{ addresses: ["10.0.0.1", "10.0.0.2/32"] }, undefined],
        [{ addresses: ["::ffff:10.0.0.1"] }, undefined],
        [{ addresses: ["fd00:0::1"] }, undefined],
        [{ addresses: [] }, undefined],
        [{ addresses: ["10.0.0.1"], namespaceSelector: "tenant" }, "is not a valid selector"],
        [{ addresses: ["10.0.0.1", "10.0.0.1"] }, `spec.addresses[1]: Duplicate value: "10.0.0.1"`],
        [{ addresses: most }, "spec.addresses: Too many: 1025: must have at most 1024 items"],
        [{}, "spec.addresses: Required value"],
      ] as const) {
        const document = { apiVersion: API_VERSION, kind: "IPAddressList", metadata: { name: "bad" }, spec };
        const decoded = ipAddressList.decode(document);
        const problems = decoded.ok ? [] : decoded.problems;
        const text = await refusal(list(spec));
        const wanted = onServer === undefined ? problems.map(({ path, message }) => `${path}: ${message}`) : [onServer];

        const missing = wanted.filter((words) => !words.split(": ").every((part) => text.includes(part)));
        expect({ spec, problems: problems.length, missing, text }).toEqual({ spec, problems: 1, missing: [], text });
      }
    },
    120_000,
  );
});

describe("policies and what they refer to", () => {
  testServer(
    "are refused if they are not valid, with the messages of vendorctl",
    async () => {
      const all = BAD_POLICIES.map(({ kind, name = "bad", spec }) => resource(kind, name, spec));
      const refusals = (await refusal(all.join("\n---\n"))).split(/^(?=The |Error from server|.*: Error from server)/m);

      expect(refusals.length).toBe(BAD_POLICIES.length);
      BAD_POLICIES.forEach(({ what, path, message, onServer }, index) => {
        const text = refusals[index] ?? "";
        const wanted = onServer === undefined ? [path, message] : [onServer];
        expect({ what, missing: wanted.filter((words) => !text.includes(words)), text }).toEqual({
          what,
          missing: [],
          text,
        });
      });
    },
    180_000,
  );

  testServer(
    "are accepted and keep every field",
    async () => {
      for (const { kind, name = "", spec } of GOOD_POLICIES) {
        await server.apply(resource(kind, name, spec));
        const stored = await server.get<{ spec: object }>(`${kind.toLowerCase()}.${identity.apiGroup}`, name);
        expect(stored.spec).toMatchObject(spec);
      }
    },
    180_000,
  );

  testServer("do not have the names of those that are derived from the NetworkPolicies of Kubernetes", async () => {
    expect(await refusal(resource("NetworkPolicy", "knp.default.web", {}))).toContain(
      'metadata.name begins with "knp.default.", as those do that are derived',
    );
  });

  testServer("have a limited number of rules, which the API server names", async () => {
    const ingress = Array.from({ length: 129 }, () => ({ action: "Allow" }));

    expect(await refusal(resource("NetworkPolicy", "many", { ingress }))).toContain(
      "spec.ingress: Too many: 129: must have at most 128 items",
    );
  });

  testServer("are printed with what operators look for", async () => {
    const spec = { order: 5, selector: "app == 'x'", types: ["Egress"] };
    await server.apply(resource("GlobalNetworkPolicy", "printed", spec));
    await server.apply(resource("Tier", "printed", { order: 10 }));
    const head = async (...args: string[]) =>
      (await server.kubectl(["get", ...args]))
        .trim()
        .split("\n")
        .map((line) => line.split(/ {2,}/).slice(0, -1));

    expect(await head("gnp", "printed")).toEqual([
      ["NAME", "TIER", "ORDER", "SELECTOR"],
      ["printed", "default", "5", "app == 'x'"],
    ]);
    expect(await head("tier", "printed")).toEqual([
      ["NAME", "ORDER", "DEFAULT ACTION"],
      ["printed", "10", "Deny"],
    ]);
  });
});

interface Stored {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

describe("the kinds of BGP", () => {
  testServer("are refused if they are not valid, with the messages of vendorctl", async () => {
    const text = await refusal(
      BAD_BGP.map(({ kind, name = "bad", spec }) => resource(kind, name, spec)).join("\n---\n"),
    );
    const refusals = text.split(/^/m).filter((line) => line.includes("is invalid"));

    expect(refusals.length, text).toBe(BAD_BGP.length);
    BAD_BGP.forEach(({ what, path, message, onServer }, index) => {
      const said = refusals[index] ?? "";
      const wanted = onServer === undefined ? [path, message] : [onServer];
      expect({ what, missing: wanted.filter((words) => !said.includes(words)), said }).toEqual({
        what,
        missing: [],
        said,
      });
    });
  });

  testServer("are accepted and keep every field", async () => {
    await server.apply(GOOD_BGP.map(({ kind, name = "", spec }) => resource(kind, name, spec)).join("\n---\n"));
    const kinds = ["bgpconfigurations", "bgppeers", "bgpfilters"].map((plural) => `${plural}.${identity.apiGroup}`);
    const { items } = await server.get<{ items: readonly Stored[] }>(kinds.join(","));
    const stored = new Map(items.map(({ kind, metadata, spec }) => [`${kind} ${metadata.name}`, spec]));

    for (const { kind, name, spec } of GOOD_BGP) expect(stored.get(`${kind} ${name}`)).toMatchObject(spec);
  });
});

describe("the other kinds", () => {
  testServer("have their limits, with their messages", async () => {
    const cases = [
      ["IPAMConfiguration", "default", { maxBlocksPerHost: -1 }, "-1: is negative; use 0 for the default limit"],
      ["IPAMConfiguration", "default", { cooldownSeconds: -1 }, "-1: is negative; use 0 to 86400 seconds"],
      [
        "IPAMConfiguration",
        "other",
        {},
        'metadata.name is not allowed: there is only one IPAMConfiguration; use "default"',
      ],
      [
        "ClusterInformation",
        "other",
        {},
        'metadata.name is not allowed: there is only one ClusterInformation; use "default"',
      ],
      [
        "IPReservation",
        "r",
        { reservedCIDRs: ["10.0.0.1", "10.0.0"] },
        'spec.reservedCIDRs[1]: Invalid value: "10.0.0": is neither an IP address nor a CIDR',
      ],
      ["IPReservation", "r", { reservedCIDRs: ["10.0.0.1/24"] }, 'has host bits; use "10.0.0.0/24"'],
    ] as const;
    for (const [kind, name, spec, wanted] of cases) expect(await refusal(resource(kind, name, spec))).toContain(wanted);
  });

  testServer("of the IPAM keep 64 bits, nulls, and their identity", async () => {
    const cidr = parsePrefix("10.5.0.0/31");
    if (cidr === undefined) throw new Error("not a prefix");
    const block = writeBlock({
      cidr,
      allocations: [0, undefined],
      unallocated: [1],
      attributes: [{ secondary: { node: "n" } }],
      sequenceNumber: 1_723_456_789_012_345_679n,
      sequenceNumberForAllocation: { 0: 1_723_456_789_012_345_678n },
      deleted: false,
    });
    const text = (spec: string) =>
      `{"apiVersion":"${API_VERSION}","kind":"IPAMBlock","metadata":{"name":"10-5-0-0-31"},"spec":${spec}}`;
    await server.kubectl(["create", "--filename=-"], text(block));

    const stored = await server.kubectl(["get", "ipamblock", "10-5-0-0-31", "--output=json"]);
    expect(stored).toContain('"sequenceNumber": 1723456789012345679');
    expect(stored).toContain('"0": 1723456789012345678');
    expect(JSON.parse(stored).spec).toMatchObject({
      affinity: null,
      allocations: [0, null],
      attributes: [{ handle_id: null }],
    });
    expect(await refusal(text(block.replace("10.5.0.0/31", "10.5.0.2/31")))).toContain("spec.cidr: Invalid value");
  });
});

/** The resources in the code blocks of all pages, as far as they are custom resources. */
function documentedResources(): readonly string[] {
  const kinds = new Set(CUSTOM_RESOURCES.map(({ row }) => row.kind));
  const pages = [
    "README.md",
    ...new Glob("docs/**/*.md").scanSync(ROOT),
    ...new Glob("deploy/examples/**").scanSync(ROOT),
  ];
  return pages.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const yaml = [...text.matchAll(/^apiVersion: .*\n(?:\w+:.*\n|[ -].*\n)+/gm)].map(([found]) => found);
    const json = [...text.matchAll(/'(\{"apiVersion":[^']*\})'/g)].map(([, found = ""]) => found);
    return [...yaml, ...json].filter((found) => kinds.has(/"?kind"?: ?"?(\w+)/.exec(found)?.[1] ?? ""));
  });
}
