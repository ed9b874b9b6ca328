import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { Interruption, STOP_EXIT_CODES } from "../main/interruption.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await apply(
    resource("IPPool", "blue", { cidr: "10.0.0.0/24" }, { labels: { rack: "a", disk: "ssd" } }),
    resource("IPPool", "red", { cidr: "10.0.1.0/24" }),
    resource("Node", "n1"),
  );
});

function ctl(args: readonly string[], surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(args, { store, ...surroundings });
}

function resource(kind: string, name: string, spec: object = {}, metadata: object = {}): object {
  return { apiVersion: API_VERSION, kind, metadata: { name, ...metadata }, spec };
}

function apply(...documents: readonly object[]): Promise<AdminRun> {
  return ctl(["apply", "-f", "-"], { stdin: documents.map((each) => JSON.stringify(each)).join("\n---\n") });
}

async function printed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await ctl(["get", ...args]);
  expect([code, stderr]).toEqual([EXIT_OK, ""]);
  return stdout;
}

describe("get on a terminal of 40 columns", () => {
  const digits = "0123456789abcdef".repeat(4);
  const endpoint = { orchestrator: "cni", node: "host1", workload: "web", containerID: digits, endpoint: "eth0" };
  const policy = { selector: "role == 'web'", types: ["Ingress"] };
  const labels = { node: "host1", container: "web", labels: { role: "web" } };

  test.each([
    ["policies", resource("NetworkPolicy", "pages", policy, { namespace: "default" }), ["NAME", "SELECTOR"]],
    ["containerlabels", resource("ContainerLabels", "web", labels), ["CONTAINER", "LABELS"]],
    [
      "wep",
      resource("WorkloadEndpoint", `host1-cni-${digits}-eth0`, { ...endpoint, ipNetworks: ["10.66.183.1/32"] }),
      ["WORKLOAD", "NETWORKS"],
    ],
  ])("of %s shows what one asks for", async (kind, document, titles) => {
    expect((await apply(document)).code).toBe(EXIT_OK);
    const { stdout } = await ctl(["get", kind], { terminalWidth: 40 });

    for (const title of titles) expect(stdout.split("\n")[0]).toContain(title);
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(40);
  });
});

describe("get", () => {
  test("selects with kubectl's label notation", async () => {
    expect(await printed("pools", "-l", "rack=a", "-o", "name")).toBe("ippool/blue\n");
    expect(await printed("pools", "-l", "!rack", "-o", "name")).toBe("ippool/red\n");
  });

  test("--no-headers prints only rows", async () => {
    expect(await printed("pools", "--no-headers")).toBe(
      "blue   10.0.0.0/24   false   all()   0s\nred    10.0.1.0/24   false   all()   0s\n",
    );
    expect(await printed("pools,nodes", "--no-headers")).toEndWith("n1         0s\n");
    expect(await printed("pools", "--no-headers", "-o", "name")).toBe("ippool/blue\nippool/red\n");
  });

  test.each([80, 40])(
    "fits a terminal of %d columns, with a bold header; -o wide and a pipe are whole",
    async (width) => {
      await apply(resource("IPPool", `a-pool-with-a-${"very-".repeat(20)}long-name`, { cidr: "10.0.2.0/24" }));
      const onTerminal = { isTerminal: true, terminalWidth: width };
      const { stdout } = await ctl(["get", "pools"], onTerminal);
      const lines = Bun.stripANSI(stdout).trimEnd().split("\n");
      const [header = ""] = stdout.split("\n");

      expect(lines).toHaveLength(4);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
      expect(stdout).toContain("…");
      expect(header).toBe(`\u001b[1m${Bun.stripANSI(header)}\u001b[0m`);
      expect((await ctl(["get", "pools", "-o", "wide"], onTerminal)).stdout).not.toContain("…");
      expect(await printed("pools")).not.toContain("…");
    },
  );

  test("--show-labels adds the labels", async () => {
    const [header, blue, red] = (await printed("pools", "--show-labels")).split("\n");

    expect(header).toEndWith("AGE   LABELS");
    expect(blue).toEndWith("0s    rack=a,disk=ssd");
    expect(red).toEndWith("0s    <none>");
  });

  test("-o jsonpath prints a list, or one resource", async () => {
    expect(await printed("pools", "-o", "jsonpath={.items[*].metadata.name}")).toBe("blue red");
    expect(await printed("pool", "red", "-o", "jsonpath={.spec.cidr}")).toBe("10.0.1.0/24");
    expect(await printed("pools,nodes", "-o", "jsonpath={range .items[*]}{.kind} {end}")).toBe("IPPool IPPool Node ");
    expect(await printed("wep", "-o", "jsonpath={.items}")).toBe("[]");
  });

  test("-o custom-columns prints one table for all kinds", async () => {
    const columns =
      'custom-columns=N:.metadata.name,CIDR:.spec.cidr,USES:spec.allowedUses[*],R:.metadata.labels["rack"]';

    expect(await printed("pools,nodes", "-o", columns)).toBe(
      [
        "N      CIDR          USES              R",
        "blue   10.0.0.0/24   Workload,Tunnel   a",
        "red    10.0.1.0/24   Workload,Tunnel   <none>",
        "n1     <none>        <none>            <none>",
        "",
      ].join("\n"),
    );
    expect(await printed("node", "n1", "-o", "custom-columns=N:.metadata.name", "--no-headers")).toBe("n1\n");
    expect(await printed("pools", "-o", 'custom-columns=N:[?(@.name=="a,b")].x', "--no-headers")).toBe(
      "<none>\n<none>\n",
    );
  });

  test.each([
    ["jsonpath", "jsonpath=…"],
    ["jsonpath=", "braces"],
    ["jsonpath={..name}", "recursive descent"],
    ["custom-columns=COLOUR", "HEADER:PATH"],
    ["custom-columns=A:.a,,B:.b", "HEADER:PATH"],
    ["custom-columns=A:.a[0,1]", "unions"],
    ["go-template={{.kind}}", "use jsonpath=TEMPLATE"],
  ])("refuses -o %p", async (format, reason) => {
    const { code, stderr } = await ctl(["get", "pools", "-o", format]);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(reason);
  });

  test("-f reads subdirectories only with -R", async () => {
    const text = (name: string) => JSON.stringify(resource("IPPool", name, { cidr: "10.0.0.0/24" }));
    const files = { "d/a.yaml": text("blue"), "d/sub/b.json": text("red"), "d/sub/deep/notes.txt": "no manifest" };

    expect((await ctl(["get", "-f", "d", "-o", "name"], { files })).stdout).toBe("ippool/blue\n");
    expect((await ctl(["get", "-f", "d", "-R", "-o", "name"], { files })).stdout).toBe("ippool/blue\nippool/red\n");
  });

  test("-f of a directory without manifests says what is read", async () => {
    const files = { "d/sub/a.yaml": "" };

    expect((await ctl(["apply", "-f", "d"], { files })).stderr).toContain(
      "Cannot find any resource in d (only .yaml, .yml and .json files are read; -R also reads those in subdirectories)",
    );
  });

  test("-R refuses a directory that contains itself", async () => {
    const { code, stderr } = await runInside(["apply", "-R", "-f", "d"], { listFolder: async () => ["loop"] });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("more than 32 directories deep");
  });

  describe("of a workload endpoint", () => {
    const endpoint = (workload: string, containerID: string, namespace = "default") => ({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: { name: `n1-cni-${containerID}-eth0`, namespace },
      spec: { orchestrator: "cni", node: "n1", workload, containerID, endpoint: "eth0" },
    });
    const given = [
      endpoint("web", "4f2a81"),
      endpoint("twice", "4f2b00"),
      endpoint("twice", "4f2c00"),
      endpoint("db", "77aa", "prod"),
    ];
    const apply = () => ctl(["apply", "-f", "-"], { stdin: JSON.stringify(given) });

    test.each([
      ["get wep web -o name", "workloadendpoint/default/n1-cni-4f2a81-eth0\n"],
      ["get wep default/web -o name", "workloadendpoint/default/n1-cni-4f2a81-eth0\n"],
      ["get wep/prod/db -o name", "workloadendpoint/prod/n1-cni-77aa-eth0\n"],
      ["get wep prod/db -o name", "workloadendpoint/prod/n1-cni-77aa-eth0\n"],
      ["get wep 4f2a -o name", "workloadendpoint/default/n1-cni-4f2a81-eth0\n"],
      ["label wep web role=web", "workloadendpoint/default/n1-cni-4f2a81-eth0 labelled\n"],
      ['patch wep web -p {"metadata":{"labels":{"a":"b"}}}', "workloadendpoint/default/n1-cni-4f2a81-eth0 patched\n"],
      ["edit wep web", "workloadendpoint/default/n1-cni-4f2a81-eth0 unchanged\n"],
      ["get container web -o name", "workloadendpoint/default/n1-cni-4f2a81-eth0\n"],
      ["get containers/web -o name", "workloadendpoint/default/n1-cni-4f2a81-eth0\n"],
      ["get Containers -n prod -o name", "workloadendpoint/prod/n1-cni-77aa-eth0\n"],
      ["delete wep web --force", "workloadendpoint/default/n1-cni-4f2a81-eth0 deleted\n"],
    ])("a container names it: %s", async (line, stdout) => {
      await apply();

      expect(await ctl(line.split(" "))).toMatchObject({ stdout });
    });

    test("describe finds it too", async () => {
      await apply();

      expect((await ctl(["describe", "wep", "web"])).stdout).toStartWith("Name:         n1-cni-4f2a81-eth0\n");
    });

    describe("of a container in two networks", () => {
      const [first] = given;
      const second = {
        ...first,
        metadata: { name: "n1-cni-4f2a81-eth1", namespace: "default" },
        spec: { ...first?.spec, endpoint: "eth1" },
      };
      const names = ["workloadendpoint/default/n1-cni-4f2a81-eth0", "workloadendpoint/default/n1-cni-4f2a81-eth1"];
      beforeEach(() => ctl(["apply", "-f", "-"], { stdin: JSON.stringify([first, second]) }));

      test.each(["get wep web", "get container web", "get containers/4f2a"])("%s shows both", async (line) => {
        expect((await ctl([...line.split(" "), "-o", "name"])).stdout).toBe(`${names.join("\n")}\n`);
      });

      test("describe shows both", async () => {
        const { code, stdout } = await ctl(["describe", "container", "web"]);

        expect(code).toBe(EXIT_OK);
        expect(stdout.match(/^Name: .*/gm)).toEqual([
          "Name:         n1-cni-4f2a81-eth0",
          "Name:         n1-cni-4f2a81-eth1",
        ]);
      });

      test("delete --force deletes both, and completion offers the name once", async () => {
        expect((await ctl(["complete-names", "--", "get", "container", ""])).stdout.match(/^web$/gm)).toHaveLength(1);
        expect((await ctl(["delete", "container", "web", "--force"])).stdout).toBe(
          names.map((name) => `${name} deleted\n`).join(""),
        );
      });

      test.each(["label wep web a=b", "edit container web"])("%s changes one resource: which?", async (line) => {
        const { code, stderr } = await ctl(line.split(" "));

        expect(code).toBe(EXIT_FAILED);
        expect(stderr).toContain(`"web" has 2 endpoints: ${names.join(", ")} (give one of them`);
      });
    });

    describe("without a kind", () => {
      const never: AdminSurroundings = { wait: () => new Promise(() => {}) };
      beforeEach(apply);

      test.each([
        ["describe web", "describe container web"],
        ["get web", "get container web"],
        ["get 4f2a", "get container 4f2a"],
        ["label web role=web", "label container web role=web"],
        ["delete db -n prod", "delete container db -n prod"],
      ])("%s: the error says the right command", async (line, right) => {
        const { code, stderr } = await ctl(line.split(" "), never);

        expect(code).toBe(EXIT_USAGE);
        expect(stderr).toContain(`; did you mean "${identity.adminTool} ${right}"?\n`);
      });

      test("a pod is not a container", async () => {
        const spec = { orchestrator: "k8s", node: "n1", pod: "shop", endpoint: "eth0" };
        const pod = { ...given[0], metadata: { name: "n1-k8s-shop-eth0", namespace: "default" }, spec };
        await ctl(["apply", "-f", "-"], { stdin: JSON.stringify(pod) });

        expect((await ctl(["describe", "shop"], never)).stderr).toContain(`"${identity.adminTool} describe wep shop"`);
      });

      test.each([
        ["no workload has the name", ["describe", "wex"], never],
        ["the datastore does not answer", ["describe", "web"], { openDatastore: () => new Promise<never>(() => {}) }],
        [
          "the datastore fails",
          ["describe", "web"],
          { ...never, openDatastore: () => Promise.reject(new PluginError("datastore-unavailable", "down")) },
        ],
      ] as const)("%s: the error is about the kind", async (_, args, surroundings) => {
        const { code, stderr } = await ctl(args, surroundings);

        expect(code).toBe(EXIT_USAGE);
        expect(stderr).toContain(`Unknown kind "${args[1]}"; did you mean "wep"?`);
      });
    });

    test.each(["get wep twice", "delete wep twice", "label wep twice a=b"])(
      "two that have the name are listed, and nothing is done: %s",
      async (line) => {
        await apply();
        const { code, stdout, stderr } = await ctl(line.split(" "));

        expect({ code, stdout }).toEqual({ code: EXIT_FAILED, stdout: "" });
        expect(stderr).toContain('"twice" names 2 resources: 4f2b00 (node n1), 4f2c00 (node n1) (give the ID or name');
        expect((await ctl(["get", "wep", "4f2b00", "-o", "name"])).stdout).toContain("n1-cni-4f2b00-eth0");
      },
    );

    test("one of another namespace is named by the error", async () => {
      await apply();

      expect((await ctl(["get", "wep", "db"])).stderr).toContain("it is in another namespace: use prod/db");
    });

    const lists: string[] = [];
    const closed = () =>
      storeAround(store, {
        read: (wanted) => {
          const [everywhere] = wanted.flatMap((each) => (each.kind === "prefix" ? [each.prefix] : []));
          if (everywhere !== undefined) lists.push(everywhere);
          if (everywhere === undefined || everywhere.endsWith("/default/")) return store.read(wanted);
          return Promise.reject(new PluginError("datastore-unavailable", "workloadendpoints is forbidden"));
        },
      });

    test("one who may not list other namespaces is told that it does not exist", async () => {
      await apply();
      const { stderr } = await runInside(["get", "wep", "dbb"], { store: closed() });

      expect(stderr).toContain("workloadendpoint/default/dbb: it does not exist");
      expect(stderr).not.toContain("forbidden");
    });

    test("other namespaces are not searched for kinds that have one name only", async () => {
      lists.length = 0;
      await runInside(["get", "networkpolicy", "dbb"], { store: closed() });

      expect(lists.filter((prefix) => !prefix.endsWith("/default/"))).toEqual([]);
    });
  });

  test.each(["namespace-", "namespace=other", "serviceaccount=root"])(
    "keeps the labels of an endpoint that its namespace's policies select by: %s",
    async (change) => {
      const { code, stderr } = await ctl(["label", "workloadendpoint", "any", `${identity.labelPrefix}${change}`]);

      expect(code).toBe(EXIT_USAGE);
      expect(stderr).toContain(`Label "${identity.labelPrefix}`);
    },
  );
});

describe("get -w", () => {
  /** Runs `get` until `steps` are done: each step starts when the output contains its text. */
  async function watch(args: readonly string[], steps: readonly (readonly [text: string, act: () => unknown])[]) {
    const user = new AbortController();
    const left = [...steps];
    let output = "";
    const onStdout = (text: string) => {
      output += text;
      while (left[0] && output.includes(left[0][0])) void left.shift()?.[1]();
      if (left.length === 0) user.abort(new Interruption("SIGINT"));
    };
    return ctl(["get", ...args, "-w"], { signal: user.signal, onStdout });
  }

  const pool = (name: string, cidr: string, spec: object = {}) => resource("IPPool", name, { cidr, ...spec });

  /** In one step: `delete` disables a pool first, which a watch may or may not see. */
  async function remove(name: string): Promise<void> {
    const key = resourceKey("ippools", { name });
    const { answers } = await store.read([{ kind: "key", key }]);
    await store.commit(answers.flat().map(({ revision }) => ({ kind: "delete", key, revision })));
  }

  test("prints the resources, then each change, and ends with Ctrl-C", async () => {
    const { code, stdout, stderr } = await watch(
      ["pools", "--output-watch-events"],
      [
        ["red", () => apply(pool("green", "10.0.2.0/24"))],
        ["green", () => apply(pool("blue", "10.0.0.0/24", { disabled: true }))],
        ["MODIFIED", () => remove("red")],
        ["DELETED", () => {}],
      ],
    );

    expect([code, stderr]).toEqual([STOP_EXIT_CODES.SIGINT, ""]);
    expect(stdout.split("\n").map((line) => line.split(/\s+/).slice(0, 4).join(" "))).toEqual([
      "EVENT NAME CIDR DISABLED",
      "ADDED blue 10.0.0.0/24 false",
      "ADDED red 10.0.1.0/24 false",
      "ADDED green 10.0.2.0/24 false",
      "MODIFIED blue 10.0.0.0/24 true",
      "DELETED red 10.0.1.0/24 false",
      "",
    ]);
  });

  test("prints a document for each resource, and only those that are selected", async () => {
    const { stdout } = await watch(
      ["pools", "-l", "rack=a", "-o", "yaml"],
      [
        ["blue", () => ctl(["label", "pool", "red", "rack=a"])],
        ["red", () => {}],
      ],
    );

    expect(stdout.match(/^---$/gm)).toHaveLength(2);
    expect(stdout).not.toContain("items:");
  });

  test("a resource that is no longer selected counts as deleted", async () => {
    const { stdout } = await watch(
      ["pools", "-l", "rack=a", "-o", "json", "--output-watch-events"],
      [
        ["blue", () => ctl(["label", "pool", "blue", "rack-"])],
        ["DELETED", () => {}],
      ],
    );

    expect(stdout).toContain('"type": "DELETED"');
  });

  test("of a name that does not exist fails", async () => {
    const { code, stderr } = await ctl(["get", "pool", "bleu", "-w"]);

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('did you mean "blue"?');
  });

  test("sees labels that endpoints inherit, as they come, change and go", async () => {
    const endpoint = (name: string, labels: object) =>
      resource(
        ...(["WorkloadEndpoint", `n1-cni-${name}-eth0`] as const),
        { orchestrator: "cni", node: "n1", workload: name, containerID: name, endpoint: "eth0" },
        { labels },
      );
    await apply(endpoint("first", { role: "web" }), endpoint("second", {}));
    const label = (...change: readonly string[]) => ctl(["label", "container", "second", "--node", "n1", ...change]);
    const { stdout, stderr } = await watch(
      ["wep", "-l", "role=web", "--show-labels", "--output-watch-events"],
      [
        ["first", () => label("role=web")],
        ["second", () => label("tier=x")],
        ["MODIFIED", () => label("role=db", "--overwrite")],
        ["DELETED", () => {}],
      ],
    );

    expect(stderr).toBe("");
    expect(stdout.match(/(ADDED|MODIFIED|DELETED) .*?(first|second)-eth0/g)?.map((line) => line.split(/\s+/))).toEqual([
      ["ADDED", "n1-cni-first-eth0"],
      ["ADDED", "n1-cni-second-eth0"],
      ["MODIFIED", "n1-cni-second-eth0"],
      ["DELETED", "n1-cni-second-eth0"],
    ]);
    expect(stdout).toMatch(/MODIFIED.*role=web,tier=x/);
  });

  test("of a name ignores the others", async () => {
    const { stdout } = await watch(
      ["pool/red", "-o", "name"],
      [
        ["red", () => ctl(["label", "pool", "blue", "x=y"]).then(() => ctl(["label", "pool", "red", "x=y"]))],
        ["ippool/red\nippool/red", () => {}],
      ],
    );

    expect(stdout).toBe("ippool/red\nippool/red\n");
  });
});
