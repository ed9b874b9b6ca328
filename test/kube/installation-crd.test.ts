/** The CRDs of the operator on a real API server: what it accepts, refuses, keeps and prints. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { NETWORK_FIELD } from "../../src/model/installation/names.ts";
import { completeInstallation } from "../../src/release/installation/complete.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const DIRECTORY = join(import.meta.dir, "../../deploy/crds/operator");
const { product, title } = identity;
const STATUS = `${title}Status`;

let server: ApiServer;
beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  const files = `--filename=${DIRECTORY}`;
  await server.kubectl(["apply", "--server-side", files]);
  await server.kubectl(["wait", files, "--for=condition=Established", "--timeout=60s"]);
}, 120_000);
afterAll(() => server?.stop());

function object(spec: object, name = "default", kind = "Installation"): string {
  return JSON.stringify({ apiVersion: apiVersionOf(OPERATOR_API), kind, metadata: { name }, spec });
}

async function refusal(text: string): Promise<string> {
  return server.kubectl(["apply", "--dry-run=server", "--filename=-"], text).then(
    () => "accepted",
    (error: Error) => error.message,
  );
}

const network = (members: object) => ({ [NETWORK_FIELD]: members });

async function tableOf(...args: string[]): Promise<readonly (readonly string[])[]> {
  const lines = (await server.kubectl(["get", ...args])).trim().split("\n");
  return lines.map((line) => line.trim().split(/ {2,}/));
}

function conditions(first: string, message: string): object {
  const lastTransitionTime = new Date(Date.now() - 1_800_000).toISOString();
  const one = (type: string, status: string) => ({ type, status, reason: "PodFailure", message, lastTransitionTime });
  return { status: { conditions: [one(first, "False"), one("Progressing", "False"), one("Degraded", "True")] } };
}

describe("an Installation on the API server", () => {
  testServer(
    "is refused with the messages of the operator",
    async () => {
      const cases: readonly (readonly [object, string, string?])[] = [
        [{}, 'metadata.name is not used; use "default", or "overlay"', "mine"],
        [
          { variant: "Enterprise" },
          'spec.variant: Invalid value: "Enterprise": is not supported: there is one variant',
        ],
        [{ typhaMetricsPort: 1 }, "spec.typhaMetricsPort: Invalid value: "],
        [{ windowsNodes: {} }, "is not supported: nodes run Linux; remove it"],
        [{ cni: { type: "AmazonVPC" } }, 'spec.cni.type: Invalid value: "AmazonVPC": is not supported'],
        [
          { cni: { ipam: { type: title } }, ...network({ cni: { ipam: { type: "HostLocal" } } }) },
          `spec.${NETWORK_FIELD}.cni.ipam.type: Invalid value: `,
        ],
        [
          { cni: { ipam: { plugin: "AzureVNET" } } },
          'spec.cni.ipam.plugin: Invalid value: "AzureVNET": is not an IPAM',
        ],
        [{ cni: { ipam: { type: title, plugin: "HostLocal" } } }, "spec.cni.ipam.plugin: Invalid value: "],
        [
          network({ cni: { ipam: { type: title, plugin: "HostLocal" } } }),
          'differs from "type" beside it, which means the same and which the operator adds; set both to the same value',
        ],
        [
          { cni: { ipam: { type: title } }, ...network({ cni: { ipam: { plugin: "HostLocal" } } }) },
          `spec.${NETWORK_FIELD}.cni.ipam.plugin: Invalid value: `,
        ],
        [
          { datastore: { type: "Etcd", etcd: { endpoints: ["http://a:2379"], discoverySrv: "example.org" } } },
          "cannot be used with spec.datastore.etcd.endpoints; remove one of the two",
        ],
        ...["cni.log", "/..", "/ "].map(
          (logFilePath) =>
            [{ logging: { cni: { logFilePath } } }, "is not the path of a file; use an absolute path"] as const,
        ),
        [{ fipsMode: "Enabled" }, "spec.fipsMode: Invalid value: "],
        [
          { nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: 0 } } },
          "spec.nodeUpdateStrategy.rollingUpdate.maxUnavailable: Invalid value: ",
        ],
        [
          { nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: "x" } } },
          "spec.nodeUpdateStrategy.rollingUpdate.maxUnavailable: Invalid value: ",
        ],
        [{ console: { mode: "On" } }, 'spec.console.mode: Unsupported value: "On"'],
        ...["https://a", "a.example.org:8443", "*.example.org", "1.2.3", "a:b"].map(
          (host) =>
            [
              { console: { hosts: ["a.example.org", "192.0.2.7", "fd00::7", host] } },
              `spec.console.hosts[3]: Invalid value: "${host}": is not a host name or address`,
            ] as const,
        ),
        [{ console: { alerts: { service: "a.b" } } }, "is not the name of a Service; use lower-case letters"],
        [{ console: { alerts: { port: 0 } } }, "is not a port; use a whole number from 1 to 65535"],
        [{ datastore: { type: "Consul" } }, 'spec.datastore.type: Unsupported value: "Consul"'],
        [network({ linuxDataplane: "BPF" }), 'is not supported: policy is enforced with nftables; use "Nftables"'],
        [network({ sysctl: [{ key: "a", value: "b" }] }), `spec.${NETWORK_FIELD}.sysctl: Invalid value: `],
        [network({ mtu: 67 }), "is not an MTU; use a whole number from 68"],
        [network({ linuxPolicySetupTimeoutSeconds: -1 }), "is not a number of seconds"],
        [network({ nodeAddressAutodetectionV4: {} }), "has no method; use one of firstFound"],
        [network({ nodeAddressAutodetectionV4: { firstFound: true, canReach: "a" } }), "has more than one method"],
        [network({ ipPools: [{ cidr: "10.0.0.1/16" }] }), 'has host bits; use "10.0.0.0/16"'],
        [network({ ipPools: [{ cidr: "10.0.0.0/16" }, { cidr: "10.0.0.0/16" }] }), "Duplicate value"],
        [network({ ipPools: [{ cidr: "10.0.0.0/16", blockSize: 19 }] }), "is out of range for IPv4; use 20 to 32"],
        [network({ ipPools: [{ cidr: "fd00::/64", encapsulation: "IPIP" }] }), "is not supported for IPv6"],
        [network({ ipPools: [{ cidr: "169.254.0.0/16" }] }), "overlaps the link-local range"],
        [network({ ipPools: [{ cidr: "10.0.0.0/16", nodeSelector: "a =" }] }), "is not a valid selector"],
        [network({ ipPool: [] }), `unknown field "spec.${NETWORK_FIELD}.ipPool"`],
      ];
      const text = await refusal(cases.map(([spec, , name]) => object(spec, name)).join("\n---\n"));

      expect(cases.filter(([, wanted]) => !text.includes(wanted))).toEqual([]);
      expect(text.match(/Error from server/g)).toHaveLength(cases.length);
    },
    120_000,
  );

  testServer("keeps everything that the operator writes back, and the overlay gets no defaults", async () => {
    const spec = network({ ipPools: [{ cidr: "10.1.0.0/16" }] });
    await server.apply(object(spec));
    await server.apply(object({}, "overlay"));
    const facts = { version: "1.0.0", namespace: "system", pools: [], platformPodCidrs: [] };
    const completed = completeInstallation({ default: await server.get("installation", "default") }, facts);
    if (!completed.ok) throw new Error("the Installation is not valid");
    await server.kubectl([
      "patch",
      "installation",
      "default",
      "--type=merge",
      `--patch=${JSON.stringify({ spec: completed.defaults })}`,
    ]);

    expect((await server.get<{ spec: unknown }>("installation", "default")).spec).toEqual(completed.defaults);
    expect((await server.get<{ spec: unknown }>("installation", "overlay")).spec).toEqual({});
  });

  testServer("can be changed by its owner although the operator completed it", async () => {
    const apply = (manager: string, text: string) =>
      server.kubectl(["apply", "--server-side", `--field-manager=${manager}`, "--filename=-"], text);
    await server.kubectl(["delete", "installation", "default", "--ignore-not-found"]);
    await apply("helm", object(network({ ipPools: [{ cidr: "10.1.0.0/16" }] })));
    await apply("operator", object(network({ ipPools: [{ cidr: "10.1.0.0/16", blockSize: 26, name: "one" }] })));
    await apply(
      "helm",
      object(network({ ipPools: [{ cidr: "10.1.0.0/16", natOutgoing: "Disabled" }, { cidr: "10.2.0.0/16" }] })),
    );

    const { spec } = await server.get<{ spec: Readonly<Record<string, unknown>> }>("installation", "default");
    expect(spec[NETWORK_FIELD]).toEqual({
      ipPools: [{ cidr: "10.1.0.0/16", blockSize: 26, name: "one", natOutgoing: "Disabled" }, { cidr: "10.2.0.0/16" }],
    });
  });

  testServer("keeps its datastore", async () => {
    await server.kubectl(["delete", "installation", "default", "--ignore-not-found"]);
    await server.apply(object({}));
    const etcd = { datastore: { type: "Etcd", etcd: { endpoints: ["http://a:2379"] } } };

    expect(await refusal(object(etcd))).toContain("spec.datastore: Invalid value");
    expect(await refusal(object({ datastore: { type: "Kubernetes" } }))).toBe("accepted");
  });

  testServer("and its components are printed with their conditions", async () => {
    await server.apply(object({}, "node", STATUS));
    for (const [kind, name, first] of [
      ["installation", "default", "Ready"],
      [STATUS.toLowerCase(), "node", "Available"],
    ] as const) {
      const patch = JSON.stringify(conditions(first, "the image cannot be pulled"));
      await server.kubectl(["patch", kind, name, "--subresource=status", "--type=merge", `--patch=${patch}`]);

      const [head, row] = await tableOf(kind, name);
      expect(head).toEqual(["NAME", first.toUpperCase(), "PROGRESSING", "DEGRADED", "SINCE", "MESSAGE", "AGE"]);
      expect(row?.slice(0, 6)).toEqual([name, "False", "False", "True", "30m", "the image cannot be pulled"]);
    }
    expect((await server.kubectl(["get", product, "--output=name"])).split("\n")).toContain(
      `installation.${OPERATOR_API.group}/default`,
    );
  });

  testServer("is explained by kubectl", async () => {
    const text = await server.kubectl(["explain", `installation.spec.${NETWORK_FIELD}.linuxPolicySetupTimeoutSeconds`]);

    expect(text.replace(/\s+/g, " ")).toContain("Delay new pods until their policy is programmed");
  });
});
