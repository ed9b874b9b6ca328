import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { fakeCluster } from "../../../test/support/fake-cluster.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { FLOW_HISTORY_DIRECTORY } from "../../config/config-files.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { choosePods, type DiagnosedPod } from "./diagnosed-pods.ts";

interface Archive {
  readonly run: AdminRun;
  readonly path: string;
  /** Without the folder that all of them are in. */
  readonly files: ReadonlyMap<string, string>;
}

async function archiveOf(args: readonly string[], surroundings: AdminSurroundings): Promise<Archive> {
  let written: { readonly path: string; readonly content: Uint8Array } | undefined;
  const writeArchive = async (path: string, content: Uint8Array) => {
    written = { path, content };
  };
  const run = await runInside(args, { ...surroundings, writeArchive });
  if (written === undefined) throw new Error(`no archive: ${run.stderr}`);
  const files = new Map<string, string>();
  for (const [path, file] of await new Bun.Archive(Bun.gunzipSync(new Uint8Array(written.content))).files()) {
    files.set(path.replace(/^[^/]*\//, ""), await file.text());
  }
  return { run, path: written.path, files };
}

describe("node diags", () => {
  const files = {
    [`${identity.logDirectory}/cni/cni.log`]: "line 1\n",
    "/etc/cni/net.d/10-net.conflist": '{"kubernetes":{"token":"s3cr3t-t0ken"}}',
    "/proc/sys/net/ipv4/ip_forward": "1\n",
  };
  const runProgram = async ([program, ...args]: readonly string[]) =>
    program === "ipset" ? undefined : { exitCode: program === "nft" ? 1 : 0, output: `${program} ${args.join(" ")}\n` };

  test("collects the state of the host, without secrets, and says what is missing", async () => {
    const { run, path, files: found } = await archiveOf(["node", "diags"], { files, runProgram });

    expect(path).toBe("diags-20260102T030405.tar.gz");
    expect(run).toMatchObject({ code: EXIT_OK, stdout: `${path}: ${found.size} files, without secrets\n` });
    expect(found.get("date.txt")).toBe("2026-01-02T03:04:05.000Z\n");
    expect(found.get("hostname.txt")).toBe("This-Host\n");
    expect(found.get("routes-ipv4.txt")).toBe("ip -4 route show table all\n");
    expect(found.get("nft-rules.txt")).toBe("nft -a list ruleset\n\nexit code 1\n");
    expect(found.get("settings.txt")).toBe("net.ipv4.ip_forward = 1\n");
    expect(found.get(`${identity.logDirectory.slice(1)}/cni/cni.log`)).toBe("line 1\n");
    expect(found.get("etc/cni/net.d/10-net.conflist")).toBe('{"kubernetes":{"token":"[redacted]"}}');
    expect(found.get("missing.txt")).toContain('ipset list: there is no program "ipset"');
    for (const name of ["addresses.txt", "sockets.txt", "journal.txt", "nft-sets.txt", "routing.json", "host.json"]) {
      expect(found.has(name)).toBe(true);
    }
    expect([...found.values()].join("")).not.toContain("s3cr3t");
  });

  test("leaves out files that may be secrets, and names them", async () => {
    const secrets = {
      [`${identity.configDirectory}/bgp-password`]: "S3cretOfTheFabric",
      [`${identity.configDirectory}/kubeconfig`]: "S3cretOfTheFabric",
      "/etc/cni/net.d/other-plugin-kubeconfig": "S3cretOfTheFabric",
      "/etc/cni/net.d/other.d/key.json": "S3cretOfTheFabric",
      [`${identity.logDirectory}/passwords.txt`]: "S3cretOfTheFabric",
    };
    const config = `${identity.configDirectory}/${identity.adminTool}.yaml`;
    const { files: found } = await archiveOf(["node", "diags"], {
      files: { ...files, ...secrets, [config]: "datastoreType: embedded\n" },
      runProgram,
    });

    expect([...found.values()].join("")).not.toContain("S3cretOfTheFabric");
    expect(found.get(config.slice(1))).toBe("datastoreType: embedded\n");
    expect(found.get("missing.txt")).toContain(`a file of an unknown kind: ${identity.configDirectory}/bgp-password\n`);
  });

  test("removes passwords of BGP sessions from every file", async () => {
    const { files: found } = await archiveOf(["node", "diags"], {
      files: {
        [`${identity.runDirectory}/bird/bird.conf`]: 'protocol bgp A {\n  password "S3cret.Of+The*Fabric";\n}\n',
        [`${identity.logDirectory}/of-the-fabric.log`]: "S3cret.Of+The*Fabric\n",
      },
      runProgram,
    });

    expect(found.get(`${identity.logDirectory.slice(1)}/of-the-fabric.log`)).toBe("[redacted]\n");
    expect([...found.values()].join("")).not.toContain("S3cret.Of");
  });

  test("reads the logs of another directory, and writes another file", async () => {
    const surroundings = { files: { "/logs/a.log": "a" }, runProgram };
    const { path, files: found } = await archiveOf(
      ["node", "diags", "--log-dir", "/logs", "--archive", "/tmp/x.tgz"],
      surroundings,
    );

    expect([path, found.get("logs/a.log")]).toEqual(["/tmp/x.tgz", "a"]);
  });
});

describe("flows in node diags", () => {
  const LOSSES = `{"losses":{"node":"n1","kernelOverruns":7}}`;
  const FLOW = JSON.stringify({
    ...{ id: "n1-1", node: "n1", family: 4, protocol: 6, direction: "both", verdict: "denied", decisions: [] },
    ...{ source: { kind: "outside", address: "192.0.2.7" }, destination: { kind: "outside", address: "192.0.2.8" } },
    ...{ state: "denied", start: 1, end: 1, sent: { packets: 1, bytes: 60 }, received: { packets: 0, bytes: 0 } },
  });
  const runProgram = async (command: readonly string[]) => ({ exitCode: 0, output: `${command.join(" ")}\n` });
  const logFile = `${identity.logDirectory}/who.log`;
  const withCollector = async (args: readonly string[]) => {
    const directory = temporaryDirectory("diags");
    const asked: string[] = [];
    const server = Bun.serve({
      unix: join(directory.path, "flows.sock"),
      fetch: ({ url }) => {
        asked.push(`${new URL(url).pathname}${new URL(url).search}`);
        return new Response(url.endsWith("last=0") ? `${LOSSES}\n` : `{"flow":${FLOW}}\n${LOSSES}\n`);
      },
    });
    try {
      const env = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory.path };
      const files = { [logFile]: `${FLOW}\n`, "/proc/sys/net/netfilter/nf_conntrack_acct": "1\n" };
      return { ...(await archiveOf(["node", "diags", ...args], { files, runProgram, env })), asked };
    } finally {
      await server.stop(true);
      directory.remove();
    }
  };

  test("are settings, losses and the size of the history, but no flow, wherever the flows are logged", async () => {
    const { files, asked } = await withCollector([]);

    expect(asked).toEqual(["/flows?last=0"]);
    expect(files.get("flow-losses.jsonl")).toBe(`${LOSSES}\n`);
    expect(files.get("flow-history.txt")).toBe(`ls -l ${FLOW_HISTORY_DIRECTORY}\n`);
    expect(files.get("node-agent-configurations.yaml")).toContain("get nodeagentconfigurations");
    expect(files.get("settings.txt")).toContain("net.netfilter.nf_conntrack_acct = 1");
    expect([...files.values()].join("")).not.toContain("192.0.2.7");
    expect(files.get("missing.txt")).toContain(`${logFile}: it has flows, which are collected with --flows alone`);
  });

  test("are the flows of a time if they are asked for", async () => {
    const { files, asked } = await withCollector(["--flows", "10m"]);

    expect(asked[1]).toBe(`/flows?since=${Date.UTC(2026, 0, 2, 2, 54, 5)}&last=10000`);
    expect(files.get("flows.jsonl")).toContain("192.0.2.7");
    expect((await runInside(["node", "diags", "--flows", "soon"])).code).toBe(EXIT_USAGE);
  });

  test("are named as missing on a node that records none", async () => {
    const env = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: "/nonexistent" };
    const { files } = await archiveOf(["node", "diags"], { runProgram, env });

    expect(files.get("missing.txt")).toContain("losses of flows: this node records none");
  });
});

describe("flows in cluster diags", () => {
  const LOSSES = `{"losses":{"node":"n1","kernelOverruns":7}}\n`;
  const api = "/apis/apiregistration.k8s.io/v1/apiservices/v1.flows.vendor.org";
  const archive = (args: readonly string[], isOn: boolean) => {
    const { client } = fakeCluster({
      objects: isOn ? { [api]: { metadata: { name: "v1.flows.vendor.org" }, status: { conditions: [] } } } : {},
      respond: ({ path, query = {} }) =>
        path.endsWith("/flows") ? { status: 200, text: query["last"] === "0" ? LOSSES : `{"flow":{}}\n` } : undefined,
    });
    return archiveOf(["cluster", "diags", ...args], { openKubeClient: async () => client, env: { KUBECONFIG: "/k" } });
  };

  test("are what is missing, and the flows only if they are asked for", async () => {
    const [usual, whole, off] = [
      await archive([], true),
      await archive(["--flows", "1h"], true),
      await archive([], false),
    ];

    expect(usual.files.get("flows/losses.jsonl")).toBe(LOSSES);
    expect(usual.files.get("flows/api.json")).toContain("conditions");
    expect(usual.files.has("resources/nodeagentconfigurations.json")).toBe(true);
    expect(usual.files.has("flows/flows.jsonl")).toBe(false);
    expect(whole.files.get("flows/flows.jsonl")).toContain("flow");
    expect([...off.files.keys()].filter((path) => path.startsWith("flows/"))).toEqual([]);
    expect(off.files.get("missing.txt")).toContain("APIService v1.flows.vendor.org: there is none: flows are off");
  });
});

describe("cluster diags", () => {
  const NAMESPACE = identity.systemNamespace;
  const pod = (name: string, node: string, restartCount = 0, owner: string = identity.nodeAgent) => ({
    metadata: {
      name,
      namespace: NAMESPACE,
      ownerReferences: [{ kind: "DaemonSet", name: owner }],
      managedFields: [{}],
    },
    spec: { nodeName: node, containers: [{ name: "agent", env: [{ name: "TOKEN", token: "s3cr3t-t0ken" }] }] },
    status: { containerStatuses: [{ name: "agent", ready: true, restartCount }] },
  });
  const names = ["a", "b", "c", "d", "e", "f", "g"];
  const objects = Object.fromEntries([
    ...names.map((name, index) => [
      `/api/v1/namespaces/${NAMESPACE}/pods/${identity.nodeAgent}-${name}`,
      pod(`${identity.nodeAgent}-${name}`, `n${index}`, name === "a" ? 2 : 0),
    ]),
    [`/apis/${API_VERSION}/ippools/blue`, { metadata: { name: "blue" } }],
  ]);
  const queries: Readonly<Record<string, string>>[] = [];
  let [active, most] = [0, 0];
  const cluster = fakeCluster({
    objects,
    respond: ({ path, query = {} }) => {
      if (path.endsWith("/configmaps")) return { status: 403, text: '{"message":"not allowed"}' };
      if (!path.endsWith("/log")) return undefined;
      queries.push(query);
      return { status: 200, text: `log of ${path.split("/").at(-2)}${query["previous"] ? " before" : ""}\n` };
    },
  });
  const client = {
    ...cluster.client,
    async request(request: Parameters<typeof cluster.client.request>[0]) {
      active += 1;
      most = Math.max(most, active);
      await Bun.sleep(1);
      active -= 1;
      return cluster.client.request(request);
    },
  };
  const surroundings = { openKubeClient: async () => client, env: { KUBECONFIG: "/k" } };
  const logsOf = ({ files }: Archive) => [...files.keys()].filter((path) => path.endsWith(".log"));

  test("collects resources, workloads and logs, without secrets", async () => {
    const archive = await archiveOf(["cluster", "diags"], surroundings);
    const { run, files } = archive;

    expect(run.code).toBe(EXIT_OK);
    expect(JSON.parse(files.get("resources/ippools.json") ?? "")).toEqual([{ metadata: { name: "blue" } }]);
    expect(files.get(`${NAMESPACE}/pods.json`)).not.toContain("managedFields");
    expect([...files.values()].join("")).not.toContain("s3cr3t");
    expect(files.get("missing.txt")).toContain("configmaps");
    expect(files.get("missing.txt")).toContain("logs of 2 pods: more than --max-logs");
    expect(logsOf(archive)).toHaveLength(6);
    expect(files.get(`${NAMESPACE}/logs/${identity.nodeAgent}-a/agent.previous.log`)).toContain("before");
    expect(most).toBeLessThanOrEqual(10);
  });

  test("keeps the limits that are given, and prefers nodes", async () => {
    most = 0;
    queries.length = 0;
    const args = [
      "cluster",
      "diags",
      "--since",
      "2m",
      "--max-logs",
      "1",
      "--max-parallelism",
      "2",
      "--focus-nodes",
      "n5,n9",
    ];
    const archive = await archiveOf(args, surroundings);

    expect(logsOf(archive)).toEqual([`${NAMESPACE}/logs/${identity.nodeAgent}-f/agent.log`]);
    expect(queries).toEqual([{ container: "agent", timestamps: "true", sinceSeconds: "120" }]);
    expect(most).toBe(2);
  });

  test.each([
    ["--since", "soon"],
    ["--since", "0s"],
    ["--max-logs", "x"],
    ["--max-parallelism", "0"],
  ])("%s %s is wrong usage", async (option, value) => {
    expect((await runInside(["cluster", "diags", option, value], surroundings)).code).toBe(EXIT_USAGE);
  });
});

describe("choosePods()", () => {
  test("prefers nodes in focus, then pods that are not ready, of each workload", () => {
    const pod = (name: string, more: Partial<DiagnosedPod> = {}): DiagnosedPod => ({
      namespace: "x",
      name,
      workload: "w",
      node: name,
      isReady: true,
      isOurs: true,
      containers: [],
      ...more,
    });
    const pods = [
      pod("a"),
      pod("b", { isReady: false }),
      pod("c"),
      pod("d", { isOurs: false }),
      pod("e", { workload: "v" }),
    ];
    const chosen = choosePods(pods, { maxLogs: 2, focusNodes: ["c"] });

    expect(chosen.map(({ name }) => name)).toEqual(["c", "b", "e"]);
  });
});

describe("node run", () => {
  test.each([[[]], [["--ip", "192.0.2.1", "--backend", "bird", "--config", "f", "--dryrun"]]])(
    "%j is refused, and the alternative named",
    async (args) => {
      const { code, stderr } = await runInside(["node", "run", ...args]);

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(`systemctl enable --now ${identity.nodeAgent}`);
      expect(stderr).toContain(`${identity.adminTool} install`);
    },
  );
});
