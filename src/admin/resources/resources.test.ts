import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { letRest, means, prefix, request } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { affinityKey, blocksPrefix } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, ...surroundings });
}

function resource(kind: string, name: string, spec: object = {}, metadata: object = {}): object {
  return { apiVersion: API_VERSION, kind, metadata: { name, ...metadata }, spec };
}

const BLUE = resource("IPPool", "blue", { cidr: "10.0.0.0/24", blockSize: 28 });
const RED = resource("IPPool", "red", { cidr: "10.0.1.0/24" });

function give(command: string, ...documents: readonly object[]): Promise<AdminRun> {
  return ctl(`${command} -f -`, { stdin: documents.map((each) => JSON.stringify(each)).join("\n---\n") });
}

// biome-ignore lint/suspicious/noExplicitAny: what a script would read
async function json(words: string): Promise<any> {
  return JSON.parse((await ctl(`${words} -o json`)).stdout);
}

describe("apply", () => {
  test("creates missing resources, replaces different ones, leaves equal ones unchanged", async () => {
    expect(await give("apply", BLUE)).toEqual({ code: EXIT_OK, stdout: "ippool/blue created\n", stderr: "" });
    expect((await give("apply", BLUE)).stdout).toBe("ippool/blue unchanged\n");
    const changed = resource("IPPool", "blue", { cidr: "10.0.0.0/24", blockSize: 28, natOutgoing: true });
    expect((await give("apply", changed)).stdout).toBe("ippool/blue configured\n");
    expect(await json("get pool blue")).toMatchObject({
      metadata: { uid: expect.any(String), creationTimestamp: "2026-01-02T03:04:05.000Z" },
      spec: { natOutgoing: true },
    });
  });

  test("notes a pool that selects no node, unless a later document has the node", async () => {
    const racked = resource("IPPool", "blue", { cidr: "10.0.0.0/24", nodeSelector: "has(rack)" });
    const node = { ...resource("Node", "n1"), metadata: { name: "n1", labels: { rack: "a" } } };

    expect((await ctl("apply -f - --dry-run", { stdin: JSON.stringify(racked) })).stderr).toContain(
      "selects no node now",
    );
    expect((await give("apply", racked)).stderr).toContain("selects no node now");
    expect((await give("apply", racked)).stderr).toBe("");
    await ctl("delete pool blue");
    expect((await give("apply", racked, node)).stderr).toBe("");
  });

  const ENCRYPTED = resource("Node", "n1", { wireguard: { interfaceIPv4Address: "10.0.0.1" } });

  test("warns about every field that has no effect in this version, and writes the resource", async () => {
    const pool = resource("IPPool", "blue", { cidr: "10.0.0.0/24", vxlanMode: "Always", disableBGPExport: true });
    const { code, stdout, stderr } = await give("apply", pool, ENCRYPTED);

    expect(code).toBe(EXIT_OK);
    expect(stdout).toBe("ippool/blue created\nnode/n1 created\n");
    expect(stderr).toBe(
      "warning: node/n1: spec.wireguard has no effect in this version: traffic between nodes is not encrypted\n",
    );
    expect(JSON.parse((await ctl("apply -f - -o json", { stdin: JSON.stringify(ENCRYPTED) })).stdout)).toMatchObject({
      results: [{ action: "unchanged", warnings: [expect.any(String)] }],
    });
  });

  test.each([
    ['patch node n1 -p {"spec":{"wireguard":{"interfaceIPv6Address":"fd00::1"}}}', "node/n1 patched"],
    ["edit node n1", "node/n1 edited"],
    ["label node n1 rack=a", "node/n1 labelled"],
  ])("and so does %s", async (words, done) => {
    await give("apply", ENCRYPTED);
    const edit = (text: string) => text.replace("10.0.0.1", "10.0.0.2");
    const { code, stdout, stderr } = await ctl(words, { edit });

    expect({ code, stdout }).toEqual({ code: EXIT_OK, stdout: `${done}\n` });
    expect(stderr).toContain("warning: node/n1: spec.wireguard has no effect in this version");
  });

  test("reads several documents, lists, YAML, files and folders", async () => {
    const files = {
      "d/a.yaml": `apiVersion: ${API_VERSION}\nkind: IPPool\nmetadata: {name: blue}\nspec:\n  cidr: 10.0.0.0/24\n---\n`,
      "d/b.json": JSON.stringify({ kind: "IPPoolList", items: [RED] }),
      "d/README": "not a manifest",
      "one.yml": `apiVersion: ${API_VERSION}\nkind: Node\nmetadata:\n  name: n1\n`,
    };
    expect((await ctl("apply -f d -f one.yml", { files })).stdout).toBe(
      "ippool/blue created\nippool/red created\nnode/n1 created\n",
    );
  });

  test("reports every file, even if one is not YAML", async () => {
    const files = { "d/a.yaml": "a: }", "d/b.yaml": JSON.stringify(RED), "d/c.yaml": "kind: Nonsense" };
    const { code, stderr } = await ctl("apply -f d", { files });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('d/a.yaml: it is not valid YAML: line 1, column 4: "}" closes no bracket');
    expect(stderr).toContain('d/c.yaml:1: kind: "Nonsense" is not a known kind');
    expect((await ctl("get pools")).stderr).toBe("No resources found.\n");
  });

  test.each([
    [
      "apply -f p.yaml",
      'p.yaml:1: kind: "Pod" is not a kind of this tool: it is a kind of Kubernetes: use kubectl (kubectl apply -f FILE)',
    ],
    ["apply p.yaml", '"apply" does not take arguments: got "p.yaml"; did you mean "-f p.yaml"?'],
    ["delete p.yaml", 'Unknown kind "p.yaml"; did you mean "-f p.yaml"?'],
  ])("names what was meant: %s", async (line, expected) => {
    const files = { "p.yaml": JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" } }) };

    expect((await ctl(line, { files })).stderr).toContain(expected);
  });

  test("reports the document in a file and the path in a list of each problem", async () => {
    const list = { kind: "List", items: [null, RED, { kind: "NodeList", items: [{ kind: "Nod" }] }] };
    const stdin = ["# nothing", "---", "", "---", JSON.stringify(list), "---", "- kind: A", "---", "a: }", "---"];
    const { stderr } = await ctl("apply -f -", { stdin: stdin.join("\n") });
    const single = await ctl("apply -f -", { stdin: JSON.stringify({ kind: "List", items: [BLUE, {}] }) });

    expect(stderr.match(/stdin.*?\): /g)).toEqual([
      "stdin:5 (document 2, items[2].items[0]): ",
      "stdin:7 (document 3, [0]): ",
      "stdin (document 4): ",
    ]);
    expect(single.stderr).toContain("stdin:1 (items[1]): ");
  });

  test("refuses a duplicate key in an object, with its path and line", async () => {
    const yaml = `apiVersion: ${API_VERSION}\nkind: IPPool\nmetadata: {name: blue}\nspec:\n  cidr: 10.0.0.0/24\n  cidr: 10.0.1.0/24\n`;
    const json = `{\n"kind": "List", "items": [${JSON.stringify(BLUE)},\n${JSON.stringify(RED).replace("{", '{\n"kind": "Node", ')}]}`;
    const twice = await ctl("apply -f a.yaml -f b.json -f c.json", {
      files: { "a.yaml": `---\n---\n${yaml}`, "b.json": json, "c.json": `---\n${json}` },
    });
    const patch = await runInside(["patch", "pool", "x", "-p", '{"spec": {"disabled": true, "disabled": false}}'], {});

    expect(twice.code).toBe(EXIT_FAILED);
    expect(twice.stderr).toContain("a.yaml (document 2): spec.cidr: is given more than once, last on line 8; ");
    expect(twice.stderr).toContain("b.json: items[1].kind: is given more than once, last on line 4; ");
    expect(twice.stderr).toContain("c.json: items[1].kind: is given more than once, last on line 5; ");
    expect(patch.stderr).toContain("the patch: spec.disabled: is given more than once");
    expect((await ctl("get pools -o name")).stdout).toBe("");
  });

  test("reports the position of a JSON syntax error", async () => {
    const { stderr } = await ctl("apply -f a.json", { files: { "a.json": '---\n{\n  "kind": "IPPool"\n  "a": ]}' } });

    expect(stderr).toContain("a.json: it is not valid JSON: line 4, column 3: ");
  });

  test("reports that standard input is empty", async () => {
    expect((await ctl("apply -f - -f a.yaml", { files: { "a.yaml": "" } })).stderr).toContain("in stdin, a.yaml");
  });

  test("does nothing if there is any problem, and reports all of them", async () => {
    const bad = resource("IPPool", "bad", { cidr: "10.0.2.1/24", natOutging: true });
    const { code, stderr } = await give("apply", BLUE, bad, { kind: "IPPol" });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(
      'stdin:3 (document 2): spec.natOutging: is not a known field; did you mean "natOutgoing"?',
    );
    expect(stderr).toContain("host bits");
    expect(stderr).toContain('did you mean "IPPool"?');
    expect((await ctl("get pools -o name")).stdout).toBe("");
  });

  test("checks everything before it writes anything: overlaps in the datastore and in the file, immutable fields", async () => {
    await give("apply", BLUE);
    const overlapping = resource("IPPool", "green", { cidr: "10.0.0.128/25" });
    const grown = resource("IPPool", "blue", { cidr: "10.0.0.0/23", blockSize: 28 });
    const alsoRed = resource("IPPool", "red-2", { cidr: "10.0.1.128/25" });
    const { code, stdout, stderr } = await give("apply", RED, overlapping, grown, alsoRed);

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toBe("ippool/red not applied\n");
    expect(stderr).toContain('overlaps pool "blue"');
    expect(stderr).toContain('overlaps pool "red"');
    expect(stderr).toContain("spec.cidr");
    expect(stderr).toEndWith("Nothing was written: 3 of 4 resources cannot be applied.\n");
    expect((await ctl("get pools -o name")).stdout).toBe("ippool/blue\n");
  });

  test("reports the resources that it did not write as JSON too", async () => {
    await give("apply", BLUE);
    const overlapping = resource("IPPool", "green", { cidr: "10.0.0.128/25" });
    const { stdout } = await give("apply -o json", RED, overlapping);

    expect(JSON.parse(stdout).results).toEqual([
      { resource: "ippool/red", action: "not applied" },
      expect.objectContaining({ resource: "ippool/green", action: "failed", reason: "resource-invalid" }),
    ]);
  });

  test("keeps labels and annotations that it does not mention, unlike replace", async () => {
    const labelled = (labels: object, annotations: object) =>
      resource("Node", "n1", {}, { labels, annotations, finalizers: ["a"] });
    await give("apply", labelled({ rack: "a", disk: "ssd" }, { note: "x" }));
    const bare = resource("Node", "n1", {}, { labels: { disk: "hdd" } });

    expect((await give("apply", bare)).stdout).toBe("node/n1 configured\n");
    expect((await json("get node n1")).metadata).toMatchObject({
      labels: { rack: "a", disk: "hdd" },
      annotations: { note: "x" },
      finalizers: ["a"],
    });
    expect((await give("apply", bare)).stdout).toBe("node/n1 unchanged\n");
    await give("replace", bare);
    expect((await json("get node n1")).metadata).toMatchObject({ labels: { disk: "hdd" } });
    expect((await json("get node n1")).metadata.annotations).toBeUndefined();
  });

  test("requires apiVersion, and says which", async () => {
    const { code, stderr } = await give("apply", {
      kind: "IPPool",
      metadata: { name: "x" },
      spec: { cidr: "10.0.0.0/8", a: 1 },
    });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`stdin:1: apiVersion: is missing; write "${API_VERSION}"`);
    expect(stderr).toContain("spec.a: is not a known field");
  });

  test("replaces only the resourceVersion of the document", async () => {
    await give("apply", BLUE);
    const before = await json("get pool blue");
    await ctl("label pool blue a=b");
    const stale = await give("apply", { ...before, spec: { ...before.spec, disabled: true } });

    expect(stale.code).toBe(EXIT_FAILED);
    expect(stale.stderr).toContain("resourceVersion");
    const fresh = await json("get pool blue");
    expect((await give("replace", { ...fresh, spec: { ...fresh.spec, disabled: true } })).code).toBe(EXIT_OK);
  });

  test("what get prints can be applied again", async () => {
    await give(
      "apply",
      BLUE,
      RED,
      resource("Node", "n1", {}, { labels: { yes: "on", n: "1_0", constructor: "12:30" } }),
    );
    const { stdout } = await ctl("get pools,nodes -o yaml");
    const labels = ['"yes": "on"', '"n": "1_0"', 'constructor: "12:30"'];
    for (const label of labels) expect(stdout).toContain(`        ${label}\n`);

    expect((await ctl("apply -f -", { stdin: stdout })).stdout.match(/unchanged/g)).toHaveLength(3);
    await ctl("delete -f -", { stdin: stdout });
    expect((await ctl("apply -f -", { stdin: stdout })).stdout.match(/created/g)).toHaveLength(3);
  });
});

describe("-n", () => {
  const IN_PROD = resource("WorkloadEndpoint", "w", {}, { namespace: "prod" });
  const ANYWHERE = resource("WorkloadEndpoint", "v");

  test("is the namespace of documents that have none", async () => {
    expect((await give("apply -n prod", IN_PROD, ANYWHERE, RED)).stdout).toBe(
      "workloadendpoint/prod/w created\nworkloadendpoint/prod/v created\nippool/red created\n",
    );
  });

  test.each(["apply", "create", "replace", "delete", "get"])(
    "refuses a document of another namespace: %s",
    async (command) => {
      await give("apply", IN_PROD);
      const { code, stdout, stderr } = await give(`${command} -n other`, ANYWHERE, IN_PROD);

      expect({ code, stdout }).toEqual({ code: EXIT_FAILED, stdout: "" });
      expect(stderr).toContain('(document 2): metadata.namespace: "prod" does not match --namespace other');
      expect((await ctl("get wep -A -o name")).stdout).toBe("workloadendpoint/prod/w\n");
    },
  );

  test.each([
    ["get wep/prod/w -n other", '"prod/w" conflicts with --namespace other'],
    ["delete wep/prod/w -n other", '"prod/w" conflicts with --namespace other'],
    ["label wep/prod/w a=b -n other", '"prod/w" conflicts with --namespace other'],
    ["get wep -n other -A", "--all-namespaces"],
    ["get wep -n a/b", '"a/b" is not a valid namespace'],
    ["delete wep w -n A", '"A" is not a valid namespace'],
    ["patch wep w -p {} -n a_b", '"a_b" is not a valid namespace'],
    ["apply -f - -n a/b", '"a/b" is not a valid namespace'],
  ])("refuses a conflicting or invalid namespace: %s", async (words, hint) => {
    await give("apply", IN_PROD);
    const { code, stderr } = await ctl(words, { stdin: JSON.stringify(ANYWHERE) });

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(hint);
    expect((await ctl("get wep/prod/w -n prod")).code).toBe(EXIT_OK);
  });
});

describe("create and replace", () => {
  test("refuse an existing and a missing resource, and name it", async () => {
    expect(await give("replace", BLUE)).toMatchObject({ code: EXIT_FAILED });
    await give("create", BLUE);
    const again = await give("create", BLUE);

    expect(again.code).toBe(EXIT_FAILED);
    expect(again.stderr).toContain("ippool/blue");
    expect(again.stderr).toContain("resourceVersion 2");
    expect((await give("replace", BLUE)).code).toBe(EXIT_OK);
  });
});

describe("get", () => {
  test("prints every format", async () => {
    await give("apply", BLUE);

    expect((await ctl("get ipp")).stdout).toBe(
      "NAME   CIDR          DISABLED   SELECTOR   AGE\nblue   10.0.0.0/24   false      all()      0s\n",
    );
    expect((await ctl("get ippools -o wide")).stdout).toContain("/28");
    expect((await ctl("get ippool/blue -o name")).stdout).toBe("ippool/blue\n");
    expect((await ctl("get ippool -o yaml")).stdout).toContain('resourceVersion: "2"');
    expect(await json("get ippool")).toMatchObject({ kind: "IPPoolList", items: [{ metadata: { name: "blue" } }] });
  });

  test("selects by label and by namespace", async () => {
    await give("apply", resource("Node", "n1", {}, { labels: { rack: "a" } }), resource("Node", "n2"));
    await give("apply", resource("WorkloadEndpoint", "w", {}, { namespace: "prod" }));

    expect((await runInside(["get", "nodes", "-o", "name", "-l", "rack == 'a'"], { store })).stdout).toBe("node/n1\n");
    expect((await ctl("get wep -o name")).stdout).toBe("");
    expect((await ctl("get wep -n prod -o name")).stdout).toBe("workloadendpoint/prod/w\n");
    expect((await ctl("get wep -A")).stdout).toContain("NAMESPACE");
    expect((await ctl("get wep/prod/w -o name")).stdout).toBe("workloadendpoint/prod/w\n");
  });

  test("suggests a similar name", async () => {
    await give("apply", BLUE);
    const { code, stdout, stderr } = await ctl("get pool bleu");

    expect({ code, stdout }).toEqual({ code: EXIT_FAILED, stdout: "" });
    expect(stderr).toContain('"blue"');
  });

  test.each([["get"], ["get polic"], ["get pools,nodes x"], ["get pool -l a=>b"], ["delete pool"], ["patch pool"]])(
    "reports %p as wrong usage",
    async (words) => {
      expect(await ctl(words)).toMatchObject({ code: EXIT_USAGE, stdout: "" });
    },
  );
});

describe("patch", () => {
  const patch = (value: object) => runInside(["patch", "pool", "blue", "-p", JSON.stringify(value)], { store });

  test("merges, removes, and validates like the model", async () => {
    await give("apply", BLUE);

    expect((await patch({ spec: { disabled: true, nodeSelector: "rack == 'a'" } })).stdout).toBe(
      "ippool/blue patched\n",
    );
    expect((await patch({ spec: { nodeSelector: null } })).code).toBe(EXIT_OK);
    expect((await json("get pool blue")).spec).toMatchObject({ disabled: true, nodeSelector: "all()" });
    expect((await patch({ spec: { blockSize: 26 } })).code).toBe(EXIT_FAILED);
    expect((await patch({ spec: { disabld: true } })).stderr).toContain('"disabled"');
    expect((await patch({ metadata: { name: "other" } })).code).toBe(EXIT_FAILED);
    expect((await patch({ metadata: { resourceVersion: "1" }, spec: { disabled: false } })).code).toBe(EXIT_FAILED);
  });

  test("notes a pool that selects no node any more", async () => {
    await give("apply", BLUE, resource("Node", "n1"));
    const elsewhere = await patch({ spec: { nodeSelector: "has(rack)" } });

    expect(elsewhere.stderr).toContain('note: pool "blue" selects no node now (has(rack)), so nothing gets an address');
    expect((await patch({ spec: { nodeSelector: null } })).stderr).toBe("");
    await ctl("label node n1 rack=a");
    expect((await patch({ spec: { nodeSelector: "has(rack)" } })).stderr).toBe("");
  });

  test("concurrent changes are all kept", async () => {
    await give("apply", resource("Node", "n1"));
    const keys = Array.from({ length: 4 }, (_, index) => `k${index}`);
    const runs = await Promise.all(keys.map((key) => ctl(`label node n1 ${key}=x`)));

    expect(runs.map(({ code }) => code)).toEqual(keys.map(() => EXIT_OK));
    expect(Object.keys((await json("get node n1")).metadata.labels).sort()).toEqual(keys);
  });
});

describe("annotate", () => {
  test("sets, changes with --overwrite and removes annotations, as kubectl does", async () => {
    await give("apply", resource("Node", "n1"));

    expect((await ctl("annotate node n1 note=a vendor.org/x=y=z")).stdout).toBe("node/n1 annotated\n");
    expect((await ctl("annotate node n1 note=a")).stdout).toBe("node/n1 unchanged\n");
    expect((await ctl("annotate node n1 note=b")).stderr).toContain(
      'Cannot set annotation "note": it already has the value "a" (use --overwrite to change it)',
    );
    expect((await ctl("annotate node n1 note=b vendor.org/x- --overwrite")).code).toBe(EXIT_OK);
    expect((await json("get node n1")).metadata.annotations).toEqual({ note: "b" });
    expect((await ctl("annotate node n1 note")).stderr).toContain("use KEY=VALUE to set it, KEY- to remove it");
    expect((await ctl("annotate node n1")).code).toBe(EXIT_USAGE);
  });

  test("refuses a kind that does not support annotations", async () => {
    await give("apply", resource("IPAMConfiguration", "default", { strictAffinity: true }));

    expect((await ctl("annotate ipamconfig default a=b")).code).toBe(EXIT_FAILED);
  });

  test("keeps what the plugin recorded of an endpoint", async () => {
    const { code, stderr } = await ctl(`annotate wep any ${identity.labelPrefix}network-`);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain("records how the workload was connected");
  });
});

describe("label", () => {
  test("sets, keeps, overwrites and removes", async () => {
    await give("apply", resource("Node", "n1"));

    expect((await ctl("label node n1 rack=a vendor.org/zone=x")).stdout).toBe("node/n1 labelled\n");
    expect((await ctl("label node n1 rack=b")).code).toBe(EXIT_FAILED);
    expect((await ctl("label node n1 rack=b vendor.org/zone- --overwrite")).code).toBe(EXIT_OK);
    expect((await json("get node n1")).metadata.labels).toEqual({ rack: "b" });
    expect((await ctl("label node n1 rack")).code).toBe(EXIT_USAGE);
    expect((await ctl("label node n1 rack=b rack-")).code).toBe(EXIT_USAGE);
  });

  test("accepts names of built-in object members as labels", async () => {
    await give("apply", resource("Node", "n1"));

    expect((await ctl("label node n1 hasOwnProperty=a toString=b")).stdout).toBe("node/n1 labelled\n");
    expect((await json("get node n1")).metadata.labels).toEqual({ hasOwnProperty: "a", toString: "b" });
    expect((await ctl("label node n1 valueOf-")).stdout).toBe("node/n1 unchanged\n");
  });

  test("refuses a kind that does not support labels", async () => {
    await give("apply", resource("IPAMConfiguration", "default", { strictAffinity: true }));

    expect((await ctl("label ipamconfig default a=b")).code).toBe(EXIT_FAILED);
  });
});

describe("the only IPAMConfiguration", () => {
  test.each(["get ipamconfig other", "delete ipamconfig other", "delete ipamconfig other --force"])(
    "does not exist under another name: %s",
    async (words) => {
      await give("apply", resource("IPAMConfiguration", "default", { strictAffinity: true }));

      expect(await ctl(words)).toMatchObject({ code: EXIT_FAILED, stdout: "" });
      expect((await json("get ipamconfig default")).spec.strictAffinity).toBe(true);
    },
  );
});

describe("delete", () => {
  const allocator = () => openAllocator(store, means());
  const blocks = async () => (await store.read([{ kind: "prefix", prefix: blocksPrefix(4) }])).answers[0]?.length;

  test("deletes by name and by file; a missing resource is an error unless it is ignored", async () => {
    await give("apply", BLUE, RED);

    expect((await ctl("delete pool blue")).stdout).toBe("ippool/blue deleted\n");
    expect((await give("delete", BLUE, RED)).code).toBe(EXIT_FAILED);
    expect((await give("delete --ignore-not-found", BLUE, RED)).code).toBe(EXIT_OK);
    expect((await ctl("get pools -o name")).stdout).toBe("");
  });

  test("accepts files or names, not both: one of the two would be ignored silently", async () => {
    await give("apply", BLUE, RED);

    expect(await ctl("delete -f - pool red", { stdin: JSON.stringify(BLUE) })).toMatchObject({ code: EXIT_USAGE });
    expect((await ctl("get pools -o name")).stdout).toBe("ippool/blue\nippool/red\n");
  });

  test("refuses a pool in use, reports who uses it, and does not change it", async () => {
    await give("apply", BLUE);
    await allocator().assign(request("net.c1", { attributes: { pod: "web-0", namespace: "prod" } }));
    const before = await json("get pool blue");
    const { code, stderr } = await ctl("delete pool blue");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("prod/web-0");
    expect(stderr).toContain("node-1");
    expect(await json("get pool blue")).toEqual(before);
  });

  test("releases the blocks of an unused pool from their nodes", async () => {
    await give("apply", BLUE);
    await allocator().assign(request("net.c1"));
    await allocator().releaseHandle({ handle: "net.c1", node: "node-1" });
    expect(await blocks()).toBe(1);

    expect((await ctl("delete pool blue")).code).toBe(EXIT_OK);
    expect(await blocks()).toBe(0);
    expect((await store.read([{ kind: "prefix", prefix: "/" }])).answers[0]).toEqual([]);
  });

  test("deletes claims without a block", async () => {
    await give("apply", BLUE);
    await store.commit([{ kind: "put", key: affinityKey("node-1", prefix("10.0.0.16/28")), value: "{}" }]);

    expect((await ctl("delete pool blue")).code).toBe(EXIT_OK);
    expect((await store.read([{ kind: "prefix", prefix: "/" }])).answers[0]).toEqual([]);
  });

  test("with --force lets workloads keep their addresses", async () => {
    await give("apply", BLUE);
    await allocator().assign(request("net.c1"));
    const { code, stderr } = await ctl("delete pool blue --force");

    expect(code).toBe(EXIT_OK);
    expect(stderr).toContain("1 address stays in use");
    expect(await blocks()).toBe(1);
    await allocator().releaseHandle({ handle: "net.c1", node: "node-1" });
    expect((await ctl("ipam check")).code).toBe(EXIT_OK);
    await letRest(store);
    await ctl("ipam check --fix");
    expect(await blocks()).toBe(0);
  });

  test("a new pool must fit the blocks that are still in use", async () => {
    await give("apply", BLUE);
    await allocator().assign(request("net.c1"));
    await ctl("delete pool blue --force");
    const other = resource("IPPool", "other", { cidr: "10.0.0.0/24", blockSize: 26 });

    expect((await give("create", other)).stderr).toContain("spec.blockSize");
    expect((await give("create", BLUE)).code).toBe(EXIT_OK);
  });

  test("shows progress on a terminal, and erases the line at the end", async () => {
    const blocks = 32;
    await give("apply", resource("IPPool", "many", { cidr: "10.1.0.0/24", blockSize: 29 }));
    for (let index = 0; index < blocks; index += 1) {
      const node = `node-${index}`;
      await allocator().assign(request(`net.${index}`, { node }));
      await allocator().releaseHandle({ handle: `net.${index}`, node });
    }
    const { stderr } = await ctl("delete pool many", { showsProgress: true });

    expect(stderr).toContain(`${blocks} of ${blocks} (100 %)`);
    expect(stderr.endsWith("\r\u001b[K")).toBe(true);
    expect((await store.read([{ kind: "prefix", prefix: "/" }])).answers[0]).toEqual([]);
  });
});
